"""The guard of an exported kernel: which calls it serves, and what happens to the others."""

from __future__ import annotations

import re

from mtmc_engine.core.graph import GraphInput
from mtmc_engine.core.program import Schedule, Templated
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.render.names import attribute

# Operators that compute something else in training than in evaluation.
MODE_OPERATORS = ("batch_norm", "dropout", "rrelu")
# Offsets beyond this were not exercised; the reference takes over.
MAX_NUMEL = 2**31 - 1
# A kernel that keeps whole rows in registers was not tried on longer ones.
MAX_ROW = 2**16

_PREAMBLE = '''\
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_SAID = set()


def _say_once(reason):
    """Warn, once for each reason, that the reference runs instead of the kernels."""
    if reason not in _SAID:
        _SAID.add(reason)
        warnings.warn(f"{reason}; the reference runs instead of the kernels", stacklevel=3)


'''


def guard_source(task: Task, schedule: Schedule) -> str:
    """Python source of `_not_proven(...)`, which says why a call goes to the reference.

    It takes the call's arguments, and the module first where the reference is one. A call is
    served by the kernels only with the dtypes, ranks and fixed sizes that were proven, on a
    GPU (or under Triton's interpreter), in the proven mode, and with no gradient needed.
    """
    is_module = task.form == "module"
    whole_rows = any(
        isinstance(group.form, Templated) and group.form.template == "rows"
        for group in schedule.groups
    )
    arguments = (("model",) if is_module else ()) + task.arguments
    tensors = [entry for entry in task.graph.inputs if entry.kind == "input"]
    lines = [
        f"def _not_proven({', '.join(arguments)}):",
        '    """Why this call goes to the reference; an empty string for one that was proven."""',
        f"    needs_gradient = {_needs_gradient(tensors, is_module)}",
        "    if torch.is_grad_enabled() and needs_gradient:",
        '        return "gradients are needed and the kernels compute none"',
    ]
    if tensors:
        lines += [
            f"    if torch.is_autocast_enabled({tensors[0].target}.device.type):",
            '        return "autocast changes the dtypes that were proven"',
        ]
    lines += _argument_checks(task, tensors, whole_rows)
    for name, value in task.fixed.items():
        lines += [f"    if {name} != {value!r}:", f'        return "{name} is not {value!r}"']
    if is_module:
        lines += _module_checks(task)
    lines.append('    return ""')
    return _PREAMBLE + "\n".join(lines) + "\n"


def _needs_gradient(tensors: list[GraphInput], is_module: bool) -> str:
    terms = [f"{entry.target}.requires_grad" for entry in tensors]
    if is_module:
        terms.append("any(p.requires_grad for p in model.parameters())")
    return " or ".join(terms) or "False"


def _argument_checks(task: Task, tensors: list[GraphInput], whole_rows: bool) -> list[str]:
    """Each tensor by itself, and sizes that must agree among them."""
    lines: list[str] = []
    known: dict[str, str] = {}
    for position, entry in enumerate(tensors):
        name, spec = entry.target, entry.spec
        wrong = [f"{name}.dtype is not torch.{spec.dtype}", f"{name}.dim() != {len(spec.shape)}"]
        for dim, size in enumerate(spec.shape):
            place = f"{name}.shape[{dim}]"
            symbol = spec.dims[dim] if dim < len(spec.dims) else str(size)
            if (position, dim) not in task.vary:
                wrong.append(f"{place} != {size}")
            elif symbol in known:
                wrong.append(f"{place} != {known[symbol]}")
            elif symbol.isidentifier():
                known[symbol] = place
            else:
                wrong.append(f"{place} != {_in_sizes(symbol, known)}")
        lines += _refusal(wrong, f"{name} has a shape or dtype that was not proven")
        large = [f"{name}.numel() > {max(MAX_NUMEL, spec.numel)}"]
        if whole_rows and spec.shape and (position, len(spec.shape) - 1) in task.vary:
            large.append(f"{name}.shape[-1] > {max(MAX_ROW, spec.shape[-1])}")
        lines += _refusal(large, f"{name} is larger than what was proven")
        lines += _refusal([f"not ({name}.is_cuda or _INTERPRETED)"], f"{name} is not on a GPU")
    return lines


def _in_sizes(expression: str, known: dict[str, str]) -> str:
    """An expression over varying sizes, such as "2*s0", in terms of the arguments' shapes."""
    return re.sub(r"\bs\d+\b", lambda match: known.get(match[0], match[0]), expression)


def _refusal(wrong: list[str], reason: str) -> list[str]:
    """`if …: return reason`, one condition a line where they do not fit on one."""
    joined = " or ".join(wrong)
    head = [f"    if {joined}:"]
    if len(head[0]) > 100:
        head = ["    if (", *_wrapped(wrong), "    ):"]
    return [*head, f'        return "{reason}"']


def _wrapped(conditions: list[str]) -> list[str]:
    return [
        f"        {'or ' if number else ''}{condition}"
        for number, condition in enumerate(conditions)
    ]


def _module_checks(task: Task) -> list[str]:
    lines = []
    weights = [entry for entry in task.graph.inputs if entry.kind in ("parameter", "buffer")]
    if weights:
        wrong = [
            f"{attribute('model', entry.target)}.dtype is not torch.{entry.spec.dtype}"
            for entry in weights
        ]
        lines += _refusal(wrong, "the weights changed dtype")
    if any(word in node.op for node in task.graph.nodes for word in MODE_OPERATORS):
        mode = "not model.training" if task.policy.mode == "eval" else "model.training"
        lines += [f"    if not ({mode}):", '        return "the mode is not the one proven"']
    return lines

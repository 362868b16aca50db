"""The guard of an exported kernel: which calls it serves, and what happens to the others."""

from __future__ import annotations

import re

from msgspec.structs import replace

from mtmc_engine.core.graph import GraphInput
from mtmc_engine.core.program import Schedule, Templated
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.render.names import attribute
from mtmc_engine.schedule.render.signature import (
    NEEDED,
    differs,
    literal,
    plain_text,
    renamed_target,
)

# Operators that compute something else in training than in evaluation.
MODE_OPERATORS = ("batch_norm", "dropout", "rrelu")
# Offsets beyond this were not exercised; the reference takes over.
MAX_NUMEL = 2**31 - 1
# A kernel that keeps whole rows in registers was not tried on longer ones.
MAX_ROW = 2**16

_PREAMBLE = '''\
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_SAID = set()


def _readable(tensors):
    """Whether these are what lies in their memory: no transform, tangent, lazy sign or subclass."""
    return torch._C._functorch.peek_interpreter_stack() is None and all(
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and torch.autograd.forward_ad.unpack_dual(tensor).tangent is None
        and not tensor.is_neg()
        for tensor in tensors
    )


def _in_reach(tensor):
    """Whether a kernel that is launched now can read the tensor's memory."""
    here = tensor.is_cuda and tensor.device.index == torch.cuda.current_device()
    return here or _INTERPRETED


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
    is_module = task.form == "module" and task.launcher in ("", "ModelNew")
    whole_rows = any(
        isinstance(group.form, Templated) and group.form.template == "rows"
        for group in schedule.groups
    )
    names = {name: f"{name}_argument" for name in task.arguments if name in NEEDED}
    arguments = ("model, " if is_module else "") + plain_text(task, names)
    tensors = [
        replace(entry, target=renamed_target(entry.target, names))
        for entry in task.graph.inputs
        if entry.kind == "input"
    ]
    lines = [
        f"def _not_proven({arguments}):",
        '    """Why this call goes to the reference; an empty string for one that was proven."""',
        f"    needs_gradient = {_needs_gradient(tensors, is_module)}",
        "    if torch.is_grad_enabled() and needs_gradient:",
        '        return "gradients are needed and the kernels compute none"',
        f"    if not _readable({_read(tensors, is_module)}):",
        '        return "a transform or a tensor subclass is not seen by the kernels"',
    ]
    if tensors:
        lines += [
            f"    if torch.is_autocast_enabled({tensors[0].target}.device.type):",
            '        return "autocast changes the dtypes that were proven"',
        ]
    lines += _argument_checks(task, tensors, whole_rows)
    for name, value in task.fixed.items():
        other = differs(renamed_target(name, names), value, literal(value))
        said = f"{name} is not {value!r}".replace('"', "'")
        lines += [f"    if {other}:", f'        return "{said}"']
    if is_module:
        lines += _module_checks(task)
    lines.append('    return ""')
    return _PREAMBLE + "\n".join(lines) + "\n"


def _needs_gradient(tensors: list[GraphInput], is_module: bool) -> str:
    terms = [f"{entry.target}.requires_grad" for entry in tensors]
    if is_module:
        terms.append("any(p.requires_grad for p in model.parameters())")
    return " or ".join(terms) or "False"


def _read(tensors: list[GraphInput], is_module: bool) -> str:
    """A tuple of all tensors of a call."""
    names = [entry.target for entry in tensors]
    if is_module:
        names += ["*model.parameters()", "*model.buffers()"]
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


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
        most = "2**31 - 1" if spec.numel <= MAX_NUMEL else str(spec.numel)
        large = [f"{name}.numel() > {most}"]
        if whole_rows and spec.shape and (position, len(spec.shape) - 1) in task.vary:
            large.append(f"{name}.shape[-1] > {max(MAX_ROW, spec.shape[-1])}")
        lines += _refusal(large, f"{name} is larger than what was proven")
        lines += _refusal([f"not _in_reach({name})"], f"{name} is not on the current GPU")
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


def _assigned(target: str, names: list[str]) -> list[str]:
    """`target = (…)`, one name a line where they do not fit on one."""
    line = f"    {target} = ({', '.join(names)}{',' if len(names) == 1 else ''})"
    if len(line) <= 100:
        return [line]
    return [f"    {target} = (", *(f"        {name}," for name in names), "    )"]


def _wrapped(conditions: list[str]) -> list[str]:
    return [
        f"        {'or ' if number else ''}{condition}"
        for number, condition in enumerate(conditions)
    ]


def _module_checks(task: Task) -> list[str]:
    lines = []
    weights = [entry for entry in task.graph.inputs if entry.kind in ("parameter", "buffer")]
    by_dtype: dict[str, list[str]] = {}
    for entry in weights if not task.program else ():  # whose module may have other names
        by_dtype.setdefault(entry.spec.dtype, []).append(attribute("model", entry.target))
    for dtype, names in by_dtype.items():
        lines += [
            *_assigned("weights", names),
            f"    if any(w.dtype is not torch.{dtype} or not _in_reach(w) for w in weights):",
            '        return "the weights changed dtype or device"',
        ]
    if any(word in node.op for node in task.graph.nodes for word in MODE_OPERATORS):
        mode = "not model.training" if task.policy.mode == "eval" else "model.training"
        lines += [f"    if not ({mode}):", '        return "the mode is not the one proven"']
    return lines

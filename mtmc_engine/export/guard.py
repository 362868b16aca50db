"""The guard of an exported kernel: which calls it serves, and what happens to the others."""

from __future__ import annotations

from mtmc_engine.core.graph import GraphInput
from mtmc_engine.core.task import Task

# Operators that compute something else in training than in evaluation.
MODE_OPERATORS = ("batch_norm", "dropout", "rrelu")
# Offsets beyond this were not exercised; the reference takes over.
MAX_NUMEL = 2**31 - 1

_PREAMBLE = '''\
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_SAID = set()


def _say_once(reason):
    """Warn, once for each reason, that the reference runs instead of the kernels."""
    if reason not in _SAID:
        _SAID.add(reason)
        warnings.warn(f"{reason}; the reference runs instead of the kernels", stacklevel=3)


'''


def guard_source(task: Task) -> str:
    """Python source of `_not_proven(...)`, which says why a call goes to the reference.

    It takes the call's arguments, and the module first where the reference is one. A call is
    served by the kernels only with the dtypes, ranks and fixed sizes that were proven, on a
    GPU (or under Triton's interpreter), in the proven mode, and with no gradient needed.
    """
    is_module = task.form == "module"
    arguments = (("model",) if is_module else ()) + task.arguments
    tensors = [entry for entry in task.graph.inputs if entry.kind == "input"]
    lines = [
        f"def _not_proven({', '.join(arguments)}):",
        '    """Why this call goes to the reference; an empty string for one that was proven."""',
        f"    needs_gradient = {_needs_gradient(tensors, is_module)}",
        "    if torch.is_grad_enabled() and needs_gradient:",
        '        return "gradients are needed and the kernels compute none"',
    ]
    for position, entry in enumerate(tensors):
        lines += _tensor_checks(task, position, entry)
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


def _tensor_checks(task: Task, position: int, entry: GraphInput) -> list[str]:
    name, spec = entry.target, entry.spec
    wrong = [f"{name}.dtype is not torch.{spec.dtype}", f"{name}.dim() != {len(spec.shape)}"]
    wrong += [
        f"{name}.shape[{dim}] != {size}"
        for dim, size in enumerate(spec.shape)
        if (position, dim) not in task.vary
    ]
    return [
        f"    if {' or '.join(wrong)}:",
        f'        return "{name} has a shape or dtype that was not proven"',
        f"    if {name}.numel() > {max(MAX_NUMEL, spec.numel)}:",
        f'        return "{name} is larger than what was proven"',
        f"    if not ({name}.is_cuda or _INTERPRETED):",
        f'        return "{name} is not on a GPU"',
    ]


def _module_checks(task: Task) -> list[str]:
    lines = []
    weights = [entry for entry in task.graph.inputs if entry.kind in ("parameter", "buffer")]
    if weights:
        wrong = [f"model.{entry.target}.dtype is not torch.{entry.spec.dtype}" for entry in weights]
        lines += [f"    if {' or '.join(wrong)}:", '        return "the weights changed dtype"']
    if any(word in node.op for node in task.graph.nodes for word in MODE_OPERATORS):
        mode = "not model.training" if task.policy.mode == "eval" else "model.training"
        lines += [f"    if not ({mode}):", '        return "the mode is not the one proven"']
    return lines

"""The guard of an exported kernel: when it may run, and what happens otherwise."""

from __future__ import annotations

from mtmc_engine.core.graph import GraphInput
from mtmc_engine.core.program import ByHand, Schedule
from mtmc_engine.core.task import Task

# Operators that behave differently in training and in evaluation.
MODE_OPERATORS = ("batch_norm", "dropout", "rrelu")
MAX_NUMEL = 2**31 - 1


def guard_source(task: Task) -> str:
    """Python source of `_proven(...)` and `_fall_back(...)`.

    `_proven` takes the call's tensors, and `self` first for a module. It is true only for what
    was proven: dtypes, ranks, fixed sizes, device, mode, and no gradient needed.
    """
    is_module = task.form == "module"
    tensors = [entry for entry in task.graph.inputs if entry.kind == "input"]
    names = [entry.target for entry in tensors]
    parameters = ", ".join((["model"] if is_module else []) + names)
    conditions = _tensor_conditions(task, tensors)
    if is_module:
        conditions += _module_conditions(task)
    lines = [
        f"def _proven({parameters}):",
        '    """Whether this call is one that was proven; anything else goes to the reference."""',
        "    if torch.is_grad_enabled() and _needs_gradient(" + parameters + "):",
        '        _fall_back("gradients are needed and the kernel computes none")',
        "        return False",
    ]
    for condition, reason in conditions:
        lines += [f"    if not ({condition}):", f'        _fall_back("{reason}")', "        return False"]
    lines.append("    return True")
    return _PREAMBLE + _needs_gradient(is_module, names) + "\n\n\n" + "\n".join(lines) + "\n"


def _tensor_conditions(task: Task, tensors: list[GraphInput]) -> list[tuple[str, str]]:
    conditions = []
    for position, entry in enumerate(tensors):
        name, spec = entry.target, entry.spec
        checks = [f"{name}.dtype is torch.{spec.dtype}", f"{name}.dim() == {len(spec.shape)}"]
        for dim, size in enumerate(spec.shape):
            if (position, dim) not in task.vary:
                checks.append(f"{name}.shape[{dim}] == {size}")
        conditions.append((" and ".join(checks), f"{name} has a shape or dtype that was not proven"))
        conditions.append((f"{name}.numel() <= {MAX_NUMEL}", f"{name} is larger than was proven"))
        conditions.append((f"_on_gpu({name})", f"{name} is not on a GPU"))
    conditions += [
        (f"{name} == {value!r}", f"{name} has a value that was not proven")
        for name, value in task.fixed.items()
    ]
    return conditions


def _module_conditions(task: Task) -> list[tuple[str, str]]:
    conditions = []
    for entry in task.graph.inputs:
        if entry.kind in ("parameter", "buffer"):
            conditions.append(
                (
                    f"model.{entry.target}.dtype is torch.{entry.spec.dtype}",
                    f"{entry.target} has a dtype that was not proven",
                )
            )
    if any(word in node.op for node in task.graph.nodes for word in MODE_OPERATORS):
        training = task.policy.mode != "eval"
        conditions.append((f"model.training is {training}", "the mode is not the one proven"))
    return conditions


def _needs_gradient(is_module: bool, names: list[str]) -> str:
    parameters = ", ".join((["model"] if is_module else []) + names)
    terms = [f"{name}.requires_grad" for name in names]
    if is_module:
        terms.append("any(p.requires_grad for p in model.parameters())")
    return f"def _needs_gradient({parameters}):\n    return {' or '.join(terms) or 'False'}"


def templated_share(schedule: Schedule) -> str:
    """In words, how much of the program is kernels of its own and how much library calls."""
    own = sum(1 for group in schedule.groups if type(group.form).__name__ != "Library")
    by_hand = sum(1 for group in schedule.groups if isinstance(group.form, ByHand))
    library = sum(1 for group in schedule.groups if group.region and own is not None) - own
    words = f"{own} kernel{'s' if own != 1 else ''} of its own"
    if by_hand:
        words += f" ({by_hand} edited by hand)"
    return words + (f", {library} library call group{'s' if library != 1 else ''}" if library else "")


_PREAMBLE = '''_SAID = set()
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def _fall_back(reason):
    """Say once, for each reason, that the reference runs instead of the kernel."""
    if reason not in _SAID:
        _SAID.add(reason)
        warnings.warn(f"{__name__}: {reason}; the reference runs instead", stacklevel=4)


def _on_gpu(tensor):
    return tensor.is_cuda or _INTERPRETED


'''

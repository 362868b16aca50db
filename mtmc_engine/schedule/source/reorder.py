"""Programs in groups, so that neighbours share operand tiles in the L2 cache."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from mtmc_engine.schedule.source.bounds import axis_of
from mtmc_engine.schedule.source.code import Edit, names_in
from mtmc_engine.schedule.source.flow import Flow, same
from mtmc_engine.schedule.source.listing import Binding, Kernel, Listing
from mtmc_engine.schedule.source.rewrite import Rewrite, Setting
from mtmc_engine.schedule.source.slots import slot_of

_GROUP = 8
_GROUPS = (8, 4, 16)
_PER_KERNEL = 2


def rewrites(listing: Listing, setting: Setting) -> Iterator[Rewrite]:
    """A grouped order for products on a two-dimensional grid; other groups where there is one."""
    for kernel in listing.kernels.values():
        flow = Flow(listing, kernel)
        if not flow.dots or kernel.is_tuned:
            continue
        grouped = list(_other_groups(listing, flow))
        if grouped or _is_grouped(listing, kernel):
            yield from grouped
        else:
            yield from _on_two_axes(listing, flow)
            yield from _on_one_axis(listing, flow)


def _is_grouped(listing: Listing, kernel: Kernel) -> bool:
    named = any("GROUP" in p.name.upper() for p in kernel.parameters)
    return named or any(listing.calls(kernel.node, "swizzle2d"))


def _other_groups(listing: Listing, flow: Flow) -> Iterator[Rewrite]:
    """Another size of the groups that are there, where it is written out."""
    numbers: list[cst.Integer] = []
    for call in listing.calls(flow.kernel.node, "swizzle2d"):
        last = call.args[-1].value
        numbers += [last] if isinstance(last, cst.Integer) else []
    for parameter in flow.kernel.parameters:
        if "GROUP" in parameter.name.upper() and parameter.constexpr:
            slots = [
                slot_of(listing, launch, parameter.name)
                for launch in listing.launches_of(flow.kernel)
            ]
            numbers += [slot.node for slot in slots if slot is not None]
    values = {int(number.value, 0) for number in numbers}
    if len(values) != 1:
        return
    (now,) = values
    for size in [n for n in _GROUPS if n != now][:_PER_KERNEL]:
        yield _grouped(
            listing,
            flow.kernel,
            size,
            f"Programs go in groups of {now} tiles: groups of {size} keep other operands in L2.",
            [listing.code.replaced(number, str(size)) for number in dict.fromkeys(numbers)],
        )


def _on_two_axes(listing: Listing, flow: Flow) -> Iterator[Rewrite]:
    """`pid_m = tl.program_id(0)` and `pid_n = tl.program_id(1)`: axis 0 runs fastest."""
    numbers: dict[int, list[tuple[str, Binding]]] = {}
    for name, found in flow.bindings.items():
        if len(found) == 1 and found[0].value is not None and _at_top(listing, flow, found[0]):
            axis = axis_of(flow, found[0].value)
            if axis is not None and axis < 2 and isinstance(found[0].value, cst.Call):
                numbers.setdefault(axis, []).append((name, found[0]))
    if sorted(numbers) != [0, 1] or any(len(found) != 1 for found in numbers.values()):
        return
    (fast, one), (slow, other) = numbers[0][0], numbers[1][0]
    count = f"{_word(listing)}.num_programs"
    yield from _swizzled(listing, flow, (one, other), (slow, fast), (f"{count}(1)", f"{count}(0)"))


def _on_one_axis(listing: Listing, flow: Flow) -> Iterator[Rewrite]:
    """`pid_m = pid // count` and `pid_n = pid % count`, row by row."""
    for name, found in flow.bindings.items():
        row = found[0].value if len(found) == 1 else None
        if not _is_of_program(flow, row, cst.FloorDivide):
            continue
        assert isinstance(row, cst.BinaryOperation)
        for other, candidates in flow.bindings.items():
            column = candidates[0].value if len(candidates) == 1 else None
            if not _is_of_program(flow, column, cst.Modulo):
                continue
            assert isinstance(column, cst.BinaryOperation)
            both = (found[0], candidates[0])
            if not same(row.right, column.right) or not all(
                _at_top(listing, flow, binding) for binding in both
            ):
                continue
            count = listing.code.of(row.right)
            count = count if isinstance(row.right, cst.Name) else f"({count})"
            rows = f"{_word(listing)}.num_programs(0) // {count}"
            yield from _swizzled(listing, flow, both, (name, other), (rows, count))
            return


def _is_of_program(flow: Flow, node: cst.CSTNode | None, operator: type[cst.CSTNode]) -> bool:
    return (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, operator)
        and axis_of(flow, node.left) == 0
    )


def _swizzled(
    listing: Listing,
    flow: Flow,
    bindings: tuple[Binding, Binding],
    names: tuple[str, str],
    counts: tuple[str, str],
) -> Iterator[Rewrite]:
    """names, counts: program numbers and their ranges, the slowest first."""
    code = listing.code
    statements = sorted((code.statement(b.node) for b in bindings), key=code.start)
    between = [
        statement
        for statement in flow.kernel.node.body.body
        if code.start(statements[0]) < code.start(statement) < code.start(statements[1])
    ]
    if any(names_in(statement) & set(names) for statement in between):
        return
    pair = ", ".join(names)
    lines = [
        "# Neighbours take tiles of one group, whose operands then stay in the L2 cache.",
        f"{pair} = {_word(listing)}.swizzle2d({pair}, {', '.join(counts)}, {_GROUP})",
    ]
    yield _grouped(
        listing,
        flow.kernel,
        _GROUP,
        f"{flow.kernel.name} walks its tiles line by line: groups of {_GROUP} read fewer "
        "operand tiles for as many results.",
        [code.inserted_after(statements[1], lines)],
    )


def _grouped(
    listing: Listing, kernel: Kernel, size: int, reason: str, edits: list[Edit]
) -> Rewrite:
    return Rewrite(
        kernel.name, kernel.name, f"by {size}", reason, listing, lambda: edits, {"group": size}
    )


def _at_top(listing: Listing, flow: Flow, binding: Binding) -> bool:
    """Whether it is a statement of the kernel's body, alone on its line."""
    statement = listing.code.statement(binding.node)
    alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    return alone and statement in flow.kernel.node.body.body


def _word(listing: Listing) -> str:
    return sorted(listing.language, key=len)[0]

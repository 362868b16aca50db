"""Comparisons that are always true where a block divides a size: what masks are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import libcst as cst

from mtmc_engine.schedule.source.code import dotted, names_in, walk
from mtmc_engine.schedule.source.flow import Flow, argument, ceiling, same
from mtmc_engine.schedule.source.listing import Expression, Launch, Listing
from mtmc_engine.schedule.source.order import Count, other_count
from mtmc_engine.schedule.source.slots import Grid, grid_of, meta_key, resolved, slot_of


@dataclass(frozen=True, eq=False)
class Bound:
    """`offsets < size` in a kernel. It holds everywhere where `block` divides `size`.

    single: there is one block only, so that it holds where they are equal.
    """

    comparison: cst.Comparison
    size: str
    block: str
    single: bool = False


def bounds_of(listing: Listing, flow: Flow) -> Iterator[Bound]:
    """Comparisons of a kernel that are understood; all others are left out."""
    for node in walk(flow.kernel.node):
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            found = _bound(listing, flow, node)
            if found is not None:
                yield found


def _bound(listing: Listing, flow: Flow, node: cst.Comparison) -> Bound | None:
    target = node.comparisons[0]
    left, right = node.left, target.comparator
    if isinstance(target.operator, cst.GreaterThan):
        left, right = right, left
    elif not isinstance(target.operator, cst.LessThan):
        return None
    offsets = flow.resolved(unbroadcast(left))
    block = arange_of(flow, offsets)
    if block:
        return _from_zero(flow, node, block, right)
    if not isinstance(offsets, cst.BinaryOperation) or not isinstance(offsets.operator, cst.Add):
        return None
    size = size_name(flow, right)
    for start, lanes in ((offsets.left, offsets.right), (offsets.right, offsets.left)):
        block = arange_of(flow, flow.resolved(unbroadcast(lanes)))
        if block and size and _starts(listing, flow, start, size, block):
            return Bound(node, size, block)
    return None


def _from_zero(flow: Flow, node: cst.Comparison, block: str, right: Expression) -> Bound | None:
    """`tl.arange(0, BLOCK) < K - k` within a loop over k, or `< N` for a single block."""
    size = size_name(flow, right)
    if size:
        return Bound(node, size, block, single=True)
    left = flow.resolved(right)
    if not isinstance(left, cst.BinaryOperation) or not isinstance(left.operator, cst.Subtract):
        return None
    size = size_name(flow, left.left)
    if size and _turns(flow, left.right, size, block):
        return Bound(node, size, block)
    return None


def _starts(listing: Listing, flow: Flow, start: Expression, size: str, block: str) -> bool:
    """Whether blocks begin at multiples of `block`, none of them at or behind `size`."""
    start = unbroadcast(start)
    if _turns(flow, start, size, block):
        return True
    product = flow.resolved(start)
    if not isinstance(product, cst.BinaryOperation):
        return False
    if not isinstance(product.operator, cst.Multiply):
        return False
    for number, factor in ((product.left, product.right), (product.right, product.left)):
        if dotted(factor) != block:
            continue
        launches = listing.launches_of(flow.kernel)
        axis = axis_of(flow, number)
        if axis is not None:
            return all(_covers(listing, launch, axis, size, block) for launch in launches)
        other = other_count(flow, number, (size, block))
        return other is not None and (
            other == (size, block)
            or all(_covers_product(listing, one, (size, block), other) for one in launches)
        )
    return False


def _turns(flow: Flow, start: Expression, size: str, block: str) -> bool:
    """Whether `start` is where a turn of a loop over `size` in blocks begins."""
    name, by_count = dotted(start), False
    if isinstance(start, cst.BinaryOperation) and isinstance(start.operator, cst.Multiply):
        names = [dotted(start.left), dotted(start.right)]
        if block not in names:
            return False
        names.remove(block)
        name, by_count = names[0], True
    elif isinstance(start, cst.Name) and flow.reaching(start) is not None:
        return _turns(flow, flow.resolved(start), size, block)
    for loop in flow.loops:
        if (
            name
            and dotted(loop.target) == name
            and len(flow.bindings.get(name, ())) == _turned(flow, name)
        ):
            return all(
                _goes(flow, one, size, block, by_count)
                for one in flow.loops
                if dotted(one.target) == name
            )
    return False


def _turned(flow: Flow, name: str) -> int:
    return sum(dotted(loop.target) == name for loop in flow.loops)


def _goes(flow: Flow, loop: cst.For, size: str, block: str, by_count: bool) -> bool:
    """Whether a loop goes over range(0, size, block), or by count over range(cdiv(size, block))."""
    call = loop.iter
    if not isinstance(call, cst.Call):
        return False
    if dotted(call.func) != "range" and flow.listing.word(call) != "range":
        return False
    given = [a.value for a in call.args if a.keyword is None]
    if len(given) > 1 and not (isinstance(given[0], cst.Integer) and given[0].value == "0"):
        return False
    if not by_count:
        return len(given) == 3 and size_name(flow, given[1]) == size and dotted(given[2]) == block
    divided = ceiling(flow.resolved(given[-1])) if 0 < len(given) < 3 else None
    return (
        divided is not None and size_name(flow, divided[0]) == size and dotted(divided[1]) == block
    )


def axis_of(flow: Flow, node: Expression) -> int | None:
    """The grid's axis whose program number a value is, in its own or in a swizzled order."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value == "to":
            return axis_of(flow, node.func.value)
        if flow.listing.word(node) == "program_id":
            axis = argument(node, 0, "axis")
            return int(axis.value) if isinstance(axis, cst.Integer) else None
    if not isinstance(node, cst.Name):
        return None
    found = flow.bindings.get(node.value, ())
    values = [binding.value for binding in found if binding.value is not None]
    others = [binding.node for binding in found if binding.value is None]
    if len(values) != 1 or not all(_is_swizzle(flow, other) for other in others):
        return None
    return axis_of(flow, values[0])


def _is_swizzle(flow: Flow, node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Assign) and flow.listing.word(node.value) == "swizzle2d"


def _covers(listing: Listing, launch: Launch, axis: int, size: str, block: str) -> bool:
    """Whether an axis of the grid is exactly cdiv(size, block), with what is passed for both."""
    grid = grid_of(listing, launch)
    if grid is None or len(grid.axes) <= axis or not launch.whole:
        return False
    return _counts(listing, launch, grid, grid.axes[axis], (size, block))


def _covers_product(listing: Listing, launch: Launch, one: Count, other: Count) -> bool:
    """Whether the first axis of the grid is exactly the product of two counts of blocks."""
    grid = grid_of(listing, launch)
    if grid is None or not grid.axes or not launch.whole:
        return False
    product = _local(listing, launch, grid.axes[0])
    if not isinstance(product, cst.BinaryOperation):
        return False
    if not isinstance(product.operator, cst.Multiply):
        return False
    return any(
        _counts(listing, launch, grid, left, one) and _counts(listing, launch, grid, right, other)
        for left, right in permutations((product.left, product.right))
    )


def _counts(listing: Listing, launch: Launch, grid: Grid, node: Expression, count: Count) -> bool:
    """Whether an expression of the grid is cdiv(size, block), with what is passed for both."""
    size, block = count
    divided = ceiling(_local(listing, launch, node))
    if divided is None:
        return False
    if not _is_passed(listing, launch, divided[0], size):
        return False
    if meta_key(divided[1], grid.meta) == block:
        return True
    slot, given = slot_of(listing, launch, block), launch.value(block)
    divisor = resolved(listing, launch.function, divided[1])
    alike = slot is not None and divisor is not None and slot.value == divisor.value
    return alike or (given is not None and same(given, divided[1]))


def _is_passed(listing: Listing, launch: Launch, what: Expression, size: str) -> bool:
    """Whether what the grid divides is what is passed for a size."""
    passed, divided = launch.value(size), _local(listing, launch, what)
    if isinstance(what, cst.Name) and passed is not None and same(what, passed):
        return _is_bound_once(launch, listing, what.value)
    if passed is None or not same(divided, _local(listing, launch, passed)):
        return False
    return all(_is_bound_once(launch, listing, name) for name in names_in(divided))


def _is_bound_once(launch: Launch, listing: Listing, name: str) -> bool:
    """Whether a name stands for one value all through the launcher."""
    if launch.function is None:
        return True
    given = [p.name.value for p in launch.function.params.params]
    return given.count(name) + len(listing.bindings(launch.function).get(name, ())) <= 1


def _local(listing: Listing, launch: Launch, node: Expression) -> Expression:
    """What a local name of the launcher stands for."""
    for _ in range(4):
        if not isinstance(node, cst.Name):
            break
        only = listing.only(launch.function, node.value)
        if only is None or only.value is None:
            break
        node = only.value
    return node


def arange_of(flow: Flow, node: Expression) -> str:
    """BLOCK of tl.arange(0, BLOCK), where that is a compile-time parameter; "" otherwise."""
    if flow.listing.word(node) != "arange" or not isinstance(node, cst.Call):
        return ""
    values = [arg.value for arg in node.args]
    if len(values) != 2 or not isinstance(values[0], cst.Integer) or values[0].value != "0":
        return ""
    parameter = flow.kernel.parameter(dotted(values[1]))
    return parameter.name if parameter is not None and parameter.constexpr else ""


def size_name(flow: Flow, node: Expression) -> str:
    """The name of a size that is passed at run time; "" for anything else."""
    parameter = flow.kernel.parameter(dotted(node))
    is_plain = parameter is not None and not parameter.constexpr
    return dotted(node) if is_plain and dotted(node) not in flow.bindings else ""


def unbroadcast(node: Expression) -> Expression:
    """x of x[:, None]."""
    if isinstance(node, cst.Subscript) and all(_is_broadcast(e.slice) for e in node.slice):
        return node.value
    return node


def _is_broadcast(part: cst.BaseSlice) -> bool:
    if isinstance(part, cst.Slice):
        return part.lower is None and part.upper is None and part.step is None
    return isinstance(part, cst.Index) and dotted(part.value) == "None"

"""Where the numbers that tune a kernel are written: block sizes, warps and stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from mtmc_engine.schedule.source.code import dotted, walk
from mtmc_engine.schedule.source.flow import Flow, ceiling
from mtmc_engine.schedule.source.listing import Expression, Kernel, Launch, Listing


@dataclass(frozen=True, eq=False)
class Slot:
    """A number of the source that a compile-time parameter gets its value from.

    name: of the variable that holds it on the way, "" where the launch has it as it is.
    """

    value: int
    node: cst.Integer
    name: str = ""


@dataclass(frozen=True, eq=False)
class Grid:
    """A launch grid, taken apart. meta: parameter of the lambda, "" where it is none."""

    axes: tuple[Expression, ...]
    meta: str
    node: Expression


def slot_of(listing: Listing, launch: Launch, name: str) -> Slot | None:
    """Where the value of a parameter at a launch is written; None where it is computed."""
    value = launch.value(name)
    return resolved(listing, launch.function, value) if value is not None else None


def resolved(listing: Listing, scope: cst.FunctionDef | None, value: Expression) -> Slot | None:
    """The number that an expression in a function comes from; None where it is computed."""
    name = ""
    for _ in range(8):
        if isinstance(value, cst.Integer):
            return Slot(int(value.value, 0), value, name)
        if isinstance(value, cst.Call) and dotted(value.func).rpartition(".")[2] == "constexpr":
            value = value.args[0].value
            continue
        if not isinstance(value, cst.Name):
            return None
        name = value.value
        found = _definition(listing, scope, name)
        if found is None:
            return None
        value, scope = found
    return None


def _definition(
    listing: Listing, scope: cst.FunctionDef | None, name: str
) -> tuple[Expression, cst.FunctionDef | None] | None:
    """The one value of a name, seen from a function: its own, a default, or the module's."""
    while True:
        bound = listing.bindings(scope).get(name, ())
        if bound:
            only = bound[0].value if len(bound) == 1 else None
            return None if only is None else (only, scope)
        if scope is None:
            return None
        params = scope.params
        for param in (*params.params, *params.kwonly_params, *params.posonly_params):
            if param.name.value == name:
                return None if param.default is None else (param.default, None)
        scope = listing.code.function(scope)


def grid_of(listing: Listing, launch: Launch) -> Grid | None:
    """The grid of a launch; None where it is computed in another way than as a tuple."""
    node: Expression = launch.grid
    for _ in range(4):
        if not isinstance(node, cst.Name):
            break
        found = _definition(listing, launch.function, node.value)
        if found is None:
            return None
        node = found[0]
    meta, body = "", node
    if isinstance(node, cst.Lambda):
        names = [param.name.value for param in node.params.params]
        if len(names) != 1:
            return None
        meta, body = names[0], node.body
    if not isinstance(body, cst.Tuple | cst.List):
        return None
    if any(isinstance(element, cst.StarredElement) for element in body.elements):
        return None
    return Grid(tuple(element.value for element in body.elements), meta, node)


def divisions(listing: Listing, launch: Launch, grid: Grid) -> Iterator[tuple[Expression, object]]:
    """(dividend, divisor) of every division that rounds up on the way to a grid.

    The divisor is the name of a compile-time parameter read from the lambda's argument, or the
    Slot that it comes from.
    """
    for axis in grid.axes:
        for node in _with_locals(listing, launch, axis):
            found = ceiling(node)
            if found is None:
                continue
            dividend, divisor = found
            yield (
                dividend,
                meta_key(divisor, grid.meta) or resolved(listing, launch.function, divisor),
            )


def _with_locals(listing: Listing, launch: Launch, axis: Expression) -> Iterator[Expression]:
    """Expressions below an axis, those of local names that it reads included."""
    stack: list[cst.CSTNode] = [axis]
    seen: set[str] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, cst.BaseExpression):
            yield node
        if isinstance(node, cst.Name) and node.value not in seen:
            seen.add(node.value)
            only = listing.only(launch.function, node.value)
            if only is not None and only.value is not None:
                stack.append(only.value)
        else:
            stack += node.children


def meta_key(node: Expression, meta: str) -> str:
    """ "BLOCK" for META["BLOCK"], where META is the grid's own argument; "" for anything else."""
    if not meta or not isinstance(node, cst.Subscript) or dotted(node.value) != meta:
        return ""
    index = node.slice[0].slice
    if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
        return str(index.value.raw_value)
    return ""


@dataclass(frozen=True, eq=False)
class Tile:
    """A block size that may be changed: where it is written, at all launches of the kernel.

    slots: the numbers to change, those of the launch itself and those repeated in its grid.
    loops: whether a loop of the kernel covers its range in blocks of it.
    """

    name: str
    value: int
    nodes: tuple[cst.Integer, ...]
    loops: bool


def tiles_of(listing: Listing, kernel: Kernel) -> tuple[Tile, ...]:
    """Block sizes of a kernel that may be changed.

    Each launch must cover its range by the grid or by a loop in blocks of that size, whatever it
    is, and the number must be written out. A kernel that is tuned has none: its tuner chooses.
    """
    launches = listing.launches_of(kernel)
    flow = Flow(listing, kernel)
    if not launches or kernel.is_tuned or not all(launch.whole for launch in launches):
        return ()
    found = (_tile(listing, flow, name, launches) for name in flow.tiles)
    return tuple(tile for tile in found if tile is not None)


def _tile(listing: Listing, flow: Flow, name: str, launches: tuple[Launch, ...]) -> Tile | None:
    loops = any(flow.steps_by(loop, name) for loop in flow.loops)
    nodes: list[cst.Integer] = []
    values: set[int] = set()
    for launch in launches:
        slot = slot_of(listing, launch, name)
        if slot is None:
            return None
        covering = _covering(listing, launch, name, slot)
        if covering is None or not (covering or loops):
            return None
        nodes += [slot.node, *(node for node in covering if node is not None)]
        values.add(slot.value)
    if len(values) != 1 or not _used_alike(listing, flow.kernel, nodes):
        return None
    return Tile(name, values.pop(), tuple(dict.fromkeys(nodes)), loops)


def _covering(
    listing: Listing, launch: Launch, name: str, slot: Slot
) -> list[cst.Integer | None] | None:
    """Numbers of the grid that have to change with a block size, None for those that follow.

    Empty where the grid does not depend on it; no list at all where that cannot be seen.
    """
    grid = grid_of(listing, launch)
    if grid is None:
        return None
    found: list[cst.Integer | None] = []
    for _, divisor in divisions(listing, launch, grid):
        if divisor == name or (isinstance(divisor, Slot) and divisor.node is slot.node):
            found.append(None)
        elif isinstance(divisor, Slot) and divisor.value == slot.value and not divisor.name:
            found.append(divisor.node)
    if not slot.name and launch.function is not None and _repeated(launch, slot, found):
        return None
    return found


def _repeated(launch: Launch, slot: Slot, covering: list[cst.Integer | None]) -> bool:
    """Whether the launcher writes the same number elsewhere, where it may mean the same."""
    assert launch.function is not None
    known = {id(node) for node in (slot.node, *covering) if node is not None}
    options = {id(a.value) for name, a in launch.arguments.items() if name.startswith("num_")}
    return any(
        isinstance(node, cst.Integer)
        and int(node.value, 0) == slot.value
        and slot.value > 8
        and id(node) not in known | options
        and not any(id(node) == id(a.value) for a in launch.arguments.values())
        for node in walk(launch.function)
    )


def _used_alike(listing: Listing, kernel: Kernel, nodes: list[cst.Integer]) -> bool:
    """Whether no other kernel takes the same number for something that cannot be changed."""
    mine = {id(node) for node in nodes}
    for other in listing.kernels.values():
        if other is kernel:
            continue
        flow = Flow(listing, other)
        for launch in listing.launches_of(other):
            for parameter in other.parameters:
                slot = slot_of(listing, launch, parameter.name) if parameter.constexpr else None
                if slot is None or id(slot.node) not in mine:
                    continue
                loops = any(flow.steps_by(loop, parameter.name) for loop in flow.loops)
                if not loops and not _covering(listing, launch, parameter.name, slot):
                    return False
    return True

"""The iteration space of a group: outer rows, a reduced block, inner lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mtmc_engine.schedule.ops import require
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Axis, Dim, leaves
from mtmc_engine.schedule.templates.tensors import Tensor, Value
from mtmc_engine.schedule.templates.trace import Trace


@dataclass(frozen=True)
class Run:
    """Axes that every tensor of the group has side by side, or not at all."""

    axes: Dim

    @property
    def size(self) -> int:
        return prod(axis.size for axis in self.axes)


@dataclass(frozen=True)
class Block:
    """Runs that one index walks through as if they were one dimension."""

    runs: tuple[Run, ...] = ()

    @property
    def size(self) -> int:
        return prod(run.size for run in self.runs)

    @property
    def axes(self) -> Dim:
        return tuple(axis for run in self.runs for axis in run.axes)


@dataclass(frozen=True)
class Space:
    """Canonical form (outer, reduced, inner) of a group's iteration space.

    For a pointwise group `reduced` holds the columns and `folded` is False.
    finished: reductions of per-row results that the launcher does on the small vectors.
    batch:    what counts the products of a batched matrix product.
    """

    outer: Block
    reduced: Block
    inner: Block
    folded: bool
    finished: tuple[Value, ...] = ()
    batch: Block = Block()

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.outer, self.reduced, self.inner)


def resolved(axes: Sequence[Axis]) -> Dim:
    """Axes in their final form, repeats and windows dropped."""
    return tuple(dict.fromkeys(axis for axis in leaves(tuple(axes)) if not axis.window))


def windows(axes: Sequence[Axis]) -> Dim:
    """The axes that are loops inside of one element."""
    return tuple(dict.fromkeys(axis for axis in leaves(tuple(axes)) if axis.window))


def storage_axes(tensor: Tensor) -> Dim:
    return tuple(axis for dim in tensor.dims for axis in leaves(dim))


def space_of(program: Trace) -> Space:
    """The group's iteration space. Raises Unsupported where it is not canonical."""
    finished = _finished(program)
    later = depends_on(program, finished)
    inner = [value for value in program.values if value not in later]
    order = _canonical_order(program, inner)
    folded = [value for value in program.folds if value not in finished]
    sets = {frozenset(resolved(value.over)) for value in folded}
    require(len(sets) <= 1, "reductions along different dimensions")
    reduced = next(iter(sets), frozenset())
    layouts = _layouts(program, finished)
    runs = _runs(order, reduced, layouts)
    if not folded:
        return Space(Block(tuple(runs[:-1])), Block(tuple(runs[-1:])), Block(), False, finished)
    marks = [run.axes[0] in reduced for run in runs]
    last = len(marks) - marks[::-1].index(True)
    swept = tuple(run for run, mark in zip(runs, marks, strict=True) if mark)
    _check_positions(folded, Block(swept))
    return Space(
        Block(tuple(run for run, mark in zip(runs[:last], marks, strict=False) if not mark)),
        Block(swept),
        Block(tuple(runs[last:])),
        True,
        finished,
    )


def _check_positions(folded: Sequence[Value], swept: Block) -> None:
    """What counts positions needs the reduced dimensions in its own order."""
    for value in folded:
        if value.kind == "scan" or value.fold in ("argmax", "argmin"):
            require(resolved(value.over) == swept.axes, "positions in another order")


def product_space(program: Trace) -> Space:
    """Rows (outer) and columns (reduced) of a group with one matrix product.

    Reductions run along whole rows of the product; their results may leave the group.
    """
    require(len(program.products) == 1, "several matrix products")
    order = resolved(program.products[0].axes)
    axes = {axis for value in program.values for axis in resolved(value.axes)}
    require(axes <= set(order), "an operand that is wider than the product")
    columns = frozenset(resolved(program.products[0].axes[-1:]))
    shapes = [set(order), set(order) - columns] if program.folds else [set(order)]
    for output in program.outputs:
        fits = set(storage_axes(output.tensor)) in shapes
        require(fits, "a result that is narrower than the product")
    for fold in program.folds:
        require(fold.kind == "reduce", "a scan after a matrix product")
        require(set(resolved(fold.over)) == columns, "a reduction across rows of a product")
    layouts = _layouts(program, ())
    product = program.products[0].product
    batched = product is not None and product.batched
    rows = frozenset(resolved(program.products[0].axes[-2:-1]))
    if batched:
        layouts.append(tuple(axis for axis in order if axis in rows))
    runs = _runs(order, columns, layouts)
    at = next(i for i, run in enumerate(runs) if run.axes[0] in columns)
    first = next(i for i, run in enumerate(runs) if run.axes[0] in rows) if batched else 0
    _check_positions(program.folds, Block(tuple(runs[at:])))
    return Space(
        Block(tuple(runs[first:at])),
        Block(tuple(runs[at:])),
        Block(),
        bool(program.folds),
        batch=Block(tuple(runs[:first])),
    )


def depends_on(program: Trace, roots: Sequence[Value]) -> set[Value]:
    """The roots and every value computed from them."""
    found = set(roots)
    for value in program.values:
        if any(operand in found for operand in value.operands):
            found.add(value)
    return found


def _finished(program: Trace) -> tuple[Value, ...]:
    """Reductions to a single number: they are finished outside of the kernel.

    What depends on them must be a number too.
    """
    totals = tuple(value for value in program.folds if not resolved(value.axes))
    if any(resolved(value.axes) for value in depends_on(program, totals)):
        return ()
    for value in depends_on(program, totals):
        if value not in totals and value.function is not None:
            known = value.function in fn.FINISHING or ".to(" in value.function.text
            require(known, "a function of a total")
    for value in totals:
        require(value.operands[0] not in totals, "a total of a total")
        require(value.fold not in ("argmax", "argmin"), "the position in a whole tensor")
    return totals


def _canonical_order(program: Trace, values: Sequence[Value]) -> Dim:
    every = set().union(*(resolved(value.axes) for value in values)) if values else set()
    every |= {axis for tensor in program.layouts for axis in storage_axes(tensor)}
    full = [value for value in values if len(resolved(value.axes)) == len(every)]
    require(bool(full), "no value spans all dimensions")
    loads = [value for value in full if value.kind == "load"]
    if not loads:
        stored = [storage_axes(output.tensor) for output in program.outputs]
        for axes in stored:
            if set(axes) == every:
                return resolved(axes)
    return resolved((loads or full)[0].axes)


def _layouts(program: Trace, finished: Sequence[Value]) -> list[Dim]:
    after = depends_on(program, finished)
    layouts = [storage_axes(tensor) for tensor in program.layouts]
    layouts += [
        storage_axes(output.stored)
        for output in program.outputs
        if output.tensor.value not in after
    ]
    layouts += [resolved(value.operands[0].axes) for value in finished]
    for value in program.values:
        if value.kind in ("index", "scan") or (value.kind == "pick" and value not in after):
            layouts += _stretches(value)
    return layouts


def _stretches(value: Value) -> list[Dim]:
    """Axes that a value walks along side by side: between its computed positions, for a pick."""
    if value.kind in ("index", "scan"):
        return [resolved(value.over)]
    found: list[list[Axis]] = [[]]
    for place in value.at:
        if isinstance(place, int):
            found.append([])
        else:
            found[-1].extend(resolved(place))
    return [tuple(axes) for axes in found if axes]


def _runs(order: Dim, reduced: frozenset[Axis], layouts: Sequence[Dim]) -> list[Run]:
    runs: list[list[Axis]] = []
    for axis in order:
        if (
            runs
            and _together(runs[-1][-1], axis, layouts)
            and ((runs[-1][-1] in reduced) == (axis in reduced))
        ):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return [Run(tuple(run)) for run in runs]


def _together(first: Axis, second: Axis, layouts: Sequence[Dim]) -> bool:
    for layout in layouts:
        if (first in layout) != (second in layout):
            return False
        if first in layout and layout.index(second) != layout.index(first) + 1:
            return False
    return True

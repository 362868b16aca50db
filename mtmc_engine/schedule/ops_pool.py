"""Rules of pooling: a fold over a small window around each element of the result."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.ops_reductions import float_kind, mean
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Axis, Dim, leaves, size_of
from mtmc_engine.schedule.templates.folds import identity
from mtmc_engine.schedule.templates.indexing import filled, index_of, new_dim, taken_at
from mtmc_engine.schedule.templates.tensors import Builder, Fold, Number, Tensor, Value

# Loops over windows are unrolled: more positions than this take too long to compile.
MOST_POSITIONS = 128
Sizes = Sequence[int] | int | None


@dataclass(frozen=True)
class Window:
    """One dimension of a pool: how many elements, how far apart, from where on."""

    size: int
    stride: int
    padding: int
    dilation: int = 1

    @property
    def reach(self) -> int:
        return self.dilation * (self.size - 1) + 1


def _each(values: Sizes, rank: int, default: Sequence[int]) -> Sequence[int]:
    if values is None or (not isinstance(values, int) and not values):
        return default
    listed = [values] if isinstance(values, int) else list(values)
    require(all(isinstance(n, int) for n in listed), "a window of a computed size")
    return listed * rank if len(listed) == 1 else listed


def windows_of(
    rank: int, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes = 1
) -> list[Window]:
    """The windows of the last `rank` dimensions."""
    sizes = _each(kernel, rank, ())
    strides = _each(stride, rank, sizes)
    paddings, dilations = _each(padding, rank, [0] * rank), _each(dilation, rank, [1] * rank)
    require(prod(sizes) <= MOST_POSITIONS, "a window of so many elements")
    return [Window(*each) for each in zip(sizes, strides, paddings, dilations, strict=True)]


def pooled(
    b: Builder, x: Tensor, windows: Sequence[Window], fold: Fold, hint: str
) -> tuple[Tensor, Tensor | None]:
    """The fold over each window, and where the window is within bounds (None: everywhere)."""
    rank, first = len(windows), len(x.dims) - len(windows)
    dims, seen = list(x.dims), list(x.dims)
    positions: dict[int, Value] = {}
    inside: list[Value] = []
    loops: list[Axis] = []
    for at, window in enumerate(windows, start=first):
        require(bool(leaves(x.dims[at])), "a window along a dimension of size one")
        dims[at] = _length(x.dims[at], window)
        loop = Axis(window.size, literal=True, window=True) if window.size > 1 else None
        loops += [loop] if loop is not None else []
        position = _position(b, dims[at], loop, window, ("x", "y", "z")[rank - 1 - at + first])
        positions[at] = position
        if window.padding:
            count = b.counted(leaves(x.dims[at]))
            inside.append(b.computed(fn.GE, (position, 0), position.axes, "bool"))
            inside.append(b.computed(fn.LT, (position, count), position.axes, "bool"))
        seen[at] = (*dims[at], *((loop,) if loop is not None else ()))
    where = _all(b, inside, "inside")
    mask = None
    if where is not None:
        mask = Tensor(where, tuple(dim if at >= first else () for at, dim in enumerate(seen)))
    read = taken_at(b, x, positions, tuple(seen), mask)
    if mask is not None:
        read = filled(b, read, mask, identity(fold, x.dtype))
    return _folded(b, fold, read.value, tuple(dims), tuple(loops), hint), mask


def _length(dim: Dim, window: Window) -> Dim:
    """How many windows fit: floor((size + 2 padding - reach) / stride) + 1."""
    less = window.reach - 2 * window.padding
    size = (size_of(dim) - less) // window.stride + 1
    text = "{0}" if less == 0 else f"({{0}} {'-' if less > 0 else '+'} {abs(less)})"
    if window.stride == window.reach and not window.padding:
        return new_dim(size, f"{{0}} // {window.stride}", dim)
    if window.stride == 1:
        return new_dim(size, f"{{0}} {'-' if less > 1 else '+'} {abs(less - 1)}", dim)
    return new_dim(size, f"{text} // {window.stride} + 1", dim)


def _position(b: Builder, dim: Dim, loop: Axis | None, window: Window, hint: str) -> Value:
    """Where in the input one element of one window is."""
    value: Value | Number = index_of(b, dim).value if dim else 0
    axes = leaves(dim)

    def step(function: fn.Function, *args: Value | Number, over: Dim, hint: str = "") -> Value:
        return b.computed(function, args, over, "int64", hint)

    if isinstance(value, Value) and window.stride != 1:
        value = step(fn.MUL, value, window.stride, over=axes)
    if loop is not None:
        along: Value = index_of(b, (loop,)).value
        if window.dilation != 1:
            along = step(fn.MUL, along, window.dilation, over=(loop,))
        axes = (*axes, loop)
        value = step(fn.ADD, value, along, over=axes) if isinstance(value, Value) else along
    if window.padding:
        value = step(fn.SUB, value, window.padding, over=axes, hint=f"~{hint}")
    if not isinstance(value, Value):
        value = b.computed(fn.constant(0), (), (), "int64")
    return value


def _all(b: Builder, conditions: Sequence[Value], hint: str) -> Value | None:
    found: Value | None = None
    for condition in conditions:
        if found is None:
            found = condition
        else:
            axes = tuple(dict.fromkeys(found.axes + condition.axes))
            found = b.computed(fn.BIT_AND, (found, condition), axes, "bool", f"~{hint}")
    return found


def _folded(
    b: Builder, fold: Fold, value: Value, dims: tuple[Dim, ...], loops: Dim, hint: str
) -> Tensor:
    if not loops:
        return Tensor(value, dims)
    axes = tuple(axis for axis in leaves(value.axes) if axis not in loops)
    key = ("window", fold, id(value), *map(id, loops))
    made = b.make(
        key,
        lambda: Value("reduce", axes, value.dtype, (value,), fold=fold, over=loops, hint=hint),
    )
    return Tensor(made, dims)


def _max_pool(rank: int, *, indices: bool) -> Any:
    def expand(
        b: Builder,
        self: Tensor,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Any:
        require(not ceil_mode, "a pool that rounds up")
        windows = windows_of(rank, kernel_size, stride, padding, dilation)
        result, _ = pooled(b, self, windows, "max", "largest")
        return (result, None) if indices else result

    return expand


def _avg_pool(rank: int) -> Any:
    def expand(
        b: Builder,
        self: Tensor,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        require(not ceil_mode, "a pool that rounds up")
        kind = float_kind(self)
        windows = windows_of(rank, kernel_size, stride, padding)
        total, inside = pooled(b, b.to(self, kind), windows, "sum", "total")
        if divisor_override is not None or count_include_pad or inside is None:
            count = divisor_override or prod(window.size for window in windows)
            return b.arith(fn.DIV, total, float(count), hint="~average")
        loops = tuple(axis for axis in leaves(inside.value.axes) if axis.window)
        ones = b.to(inside, kind).value
        counted = _folded(b, "sum", ones, total.dims, loops, "n_inside")
        return b.arith(fn.DIV, total, counted, hint="~average")

    return expand


for _rank in (1, 2, 3):
    rule(f"max_pool{_rank}d.default")(_max_pool(_rank, indices=False))
    rule(f"max_pool{_rank}d_with_indices.default")(_max_pool(_rank, indices=True))
    rule(f"avg_pool{_rank}d.default")(_avg_pool(_rank))


def _adaptive(rank: int, fold: Fold) -> Any:
    def expand(b: Builder, self: Tensor, output_size: Sizes) -> Any:
        sizes = _each(output_size, rank, ())
        require(all(size == 1 for size in sizes), "an adaptive pool to more than one element")
        dims = tuple(range(-rank, 0))
        if fold == "sum":
            return b.to(mean(b, self, dims), b.result)
        return b.reduce("max", self, dims, hint="largest"), None

    return expand


for _rank in (1, 2, 3):
    rule(f"adaptive_avg_pool{_rank}d.default", f"_adaptive_avg_pool{_rank}d.default")(
        _adaptive(_rank, "sum")
    )
    rule(f"adaptive_max_pool{_rank}d.default")(_adaptive(_rank, "max"))

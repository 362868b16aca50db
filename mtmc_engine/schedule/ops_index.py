"""Rules of operators that move elements: slices, mirrors, joins, padding, look-ups."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Axis, Dim, leaves, size_of, unify
from mtmc_engine.schedule.templates.indexing import (
    filled,
    index_of,
    mirrored,
    new_dim,
    shifted,
    taken,
    taken_at,
)
from mtmc_engine.schedule.templates.sizes import SizeText
from mtmc_engine.schedule.templates.tensors import Builder, Number, Tensor, Value

Int = int | SizeText


def _replaced(dims: Sequence[Dim], at: int, dim: Dim) -> tuple[Dim, ...]:
    return (*dims[:at], dim, *dims[at + 1 :])


def count_of(b: Builder, dim: Dim) -> Value | int:
    """Size of a dimension in the kernel."""
    return b.counted(leaves(dim)) if leaves(dim) else 1


@rule("flip.default")
def flip(b: Builder, self: Tensor, dims: Sequence[int]) -> Tensor:
    result = self
    for dim in dims:
        if result.dims[dim]:
            result = taken(b, result, dim, mirrored(b, result.dims[dim]))
    return result


@rule("roll.default")
def roll(b: Builder, self: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    require(len(shifts) == len(dims), "a roll of the flattened tensor")
    result = self
    for shift, dim in zip(shifts, dims, strict=True):
        size = self.shape[dim]
        require(abs(shift) <= size, "a roll by more than the size")
        if self.dims[dim] and shift % size:
            index, count = index_of(b, result.dims[dim]), count_of(b, result.dims[dim])
            back = shifted(b, index, start=-shift)
            if shift > 0:
                back = shifted(b, back, start=count)
            index = Tensor(b.computed(fn.MOD, (back.value, count), back.value.axes, "int64"), ())
            result = taken(b, result, dim, Tensor(index.value, (result.dims[dim],)))
    return result


def part(
    b: Builder, x: Tensor, dim: int, length: Dim, start: Number | Value, hint: str = ""
) -> Tensor:
    """`length` elements along a dimension from `start` on."""
    if not leaves(length):
        return _at(b, x, dim, start, keep=True)
    return taken(b, x, dim, shifted(b, index_of(b, length), start=start), hint)


def _at(b: Builder, x: Tensor, dim: int, place: Number | Value, keep: bool) -> Tensor:
    """One position along a dimension, which stays with size one where `keep`."""
    value = place if isinstance(place, Value) else b.computed(fn.constant(place), (), (), "int64")
    return taken(b, x, dim, Tensor(value, ((),) if keep else ()))


def _from(b: Builder, x: Tensor, dim: int, place: Int) -> Number | Value:
    """A position that may count from the end."""
    if isinstance(place, str):
        return b.counted((b.axis(place),))
    if place >= 0:
        return place
    count = count_of(b, x.dims[dim])
    return place + 1 if count == 1 else b.computed(fn.SUB, (count, -place), (), "int64")


def _spec_dim(b: Builder, at: int, output: int = 0) -> Dim:
    """A dimension of the node's result by its own expression."""
    spec = b.specs[output]
    text = (spec.dims or tuple(map(str, spec.shape)))[at]
    return (b.axis(text),) if spec.shape[at] != 1 else ()


@rule("slice.Tensor")
def slice_(
    b: Builder,
    self: Tensor,
    dim: int = 0,
    start: Int | None = None,
    end: Int | None = None,
    step: int = 1,
) -> Tensor:
    dim %= len(self.dims)
    size = b.spec.shape[dim]
    if size == self.shape[dim]:
        return self
    first = _from(b, self, dim, start or 0)
    length = _spec_dim(b, dim)
    if not length:
        return _at(b, self, dim, first, keep=True)
    return taken(b, self, dim, shifted(b, index_of(b, length), scale=step, start=first))


@rule("narrow.default")
def narrow(b: Builder, self: Tensor, dim: int, start: Int, length: Int) -> Tensor:
    return slice_(b, self, dim, start)


@rule("select.int")
def select(b: Builder, self: Tensor, dim: int, index: int) -> Tensor:
    return _at(b, self, dim, _from(b, self, dim % len(self.dims), index), keep=False)


@rule("unbind.int")
def unbind(b: Builder, self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(_at(b, self, dim, at, keep=False) for at in range(self.shape[dim]))


@rule("chunk.default", "split.Tensor", "split_with_sizes.default", "split.sizes")
def split(b: Builder, self: Tensor, sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts one after the other; their sizes are those of the results."""
    dim %= len(self.dims)
    parts: list[Tensor] = []
    start: Number | Value = 0
    for at in range(len(b.specs)):
        length = _spec_dim(b, dim, at)
        parts.append(part(b, self, dim, length, start))
        count = count_of(b, length)
        if at == 0:
            start = count
        elif isinstance(start, int) and isinstance(count, int):
            start += count
        else:
            start = b.computed(fn.ADD, (start, count), (), "int64")
    return tuple(parts)


@rule("glu.default")
def glu(b: Builder, self: Tensor, dim: int = -1) -> Tensor:
    dim %= len(self.dims)
    half = new_dim(self.shape[dim] // 2, "{0} // 2", self.dims[dim])
    first = part(b, self, dim, half, 0, "first")
    gate = part(b, self, dim, half, count_of(b, half), "gate")
    return b.arith(fn.MUL, first, b.arith(fn.SIGMOID, gate))


@rule("cat.default")
def cat(b: Builder, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Each part is read on its own stretch of the joined dimension."""
    parts = [x for x in tensors if x.shape != (0,)]
    at = dim % len(parts[0].dims)
    for other in parts[1:]:
        for place, (one, two) in enumerate(zip(parts[0].dims, other.dims, strict=True)):
            if place != at and one and two:
                unify(one, two)
    size = sum(x.shape[at] for x in parts)
    formula = " + ".join(f"{{{i}}}" for i in range(len(parts)))
    joined = new_dim(size, formula, *(x.dims[at] for x in parts))
    index = index_of(b, joined)
    starts: list[Value | int] = [0]
    for x in parts[:-1]:
        starts.append(_total(b, starts[-1], count_of(b, x.dims[at])))
    kind = b.result
    result: Tensor | None = None
    for number in reversed(range(len(parts))):
        start, end = starts[number], starts[number + 1] if number + 1 < len(parts) else None
        where = _between(b, index, start, end)
        inside = index if number == 0 else Tensor(_less(b, index.value, start), index.dims)
        seen = _replaced(parts[number].dims, at, joined)
        read = taken_at(b, parts[number], {at: inside.value}, seen, _seen(where, seen, at))
        read = Tensor(b.to(read, kind).value, seen)
        if result is None:
            result = read
        else:
            assert end is not None
            before = _seen(_compare(b, fn.LT, index, end), seen, at)
            result = Tensor(b.call(fn.WHERE, before, read, result).value, seen)
    assert result is not None
    dims = tuple(
        next((x.dims[place] for x in parts if x.dims[place]), ()) if place != at else joined
        for place in range(len(result.dims))
    )
    return Tensor(result.value, dims)


def _total(b: Builder, one: Value | int, other: Value | int) -> Value | int:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    if one == 0:
        return other
    return b.computed(fn.ADD, (one, other), (), "int64")


def _less(b: Builder, index: Value, start: Value | int) -> Value:
    return b.computed(fn.SUB, (index, start), index.axes, "int64")


def _compare(b: Builder, function: fn.Function, index: Tensor, limit: Value | int) -> Tensor:
    value = b.computed(function, (index.value, limit), index.value.axes, "bool", "~inside")
    return Tensor(value, index.dims)


def _between(b: Builder, index: Tensor, start: Value | int, end: Value | int | None) -> Tensor:
    """Where an index is within bounds; only those that are given are looked at."""
    above = None if start == 0 else _compare(b, fn.GE, index, start)
    below = None if end is None else _compare(b, fn.LT, index, end)
    if above is None or below is None:
        found = above or below
        assert found is not None
        return found
    both = b.computed(fn.BIT_AND, (above.value, below.value), index.value.axes, "bool")
    return Tensor(both, index.dims)


def _seen(x: Tensor, dims: Sequence[Dim], at: int) -> Tensor:
    """A value along one dimension among others of size one."""
    return Tensor(x.value, tuple(x.dims[0] if place == at else () for place in range(len(dims))))


@rule("stack.default")
def stack(b: Builder, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    at = dim % (len(tensors[0].dims) + 1)
    parts = [Tensor(x.value, (*x.dims[:at], (), *x.dims[at:])) for x in tensors]
    return cat(b, parts, at)


@rule("constant_pad_nd.default", "pad.default")
def pad(
    b: Builder,
    self: Tensor,
    pad: Sequence[int],
    mode: Any = "constant",
    value: Number | None = None,
) -> Tensor:
    """mode: of `pad.default`; a number there is the value of `constant_pad_nd.default`."""
    if not isinstance(mode, str):
        mode, value = "constant", mode
    require(all(isinstance(n, int) for n in pad), "padding by a size")
    dims = list(self.dims)
    positions: dict[int, Value] = {}
    inside: list[tuple[int, Tensor]] = []
    for back in range(len(pad) // 2):
        before, after = pad[2 * back : 2 * back + 2]
        at = len(dims) - 1 - back
        if before == after == 0:
            continue
        require(bool(leaves(dims[at])), "padding of a dimension of size one")
        dims[at] = new_dim(
            size_of(dims[at]) + before + after, f"{{0}} + {before + after}", dims[at]
        )
        index = shifted(b, index_of(b, dims[at]), start=-before)
        count = count_of(b, self.dims[at])
        index = Tensor(_bounded(b, mode, index.value, count), index.dims)
        positions[at] = index.value
        if mode == "constant":
            inside += [(at, _compare(b, fn.GE, index, 0))] if before else []
            inside += [(at, _compare(b, fn.LT, index, count))] if after else []
    seen = tuple(dims)
    if not inside:
        return taken_at(b, self, positions, seen)
    conditions = [_seen(x, seen, at) for at, x in inside]
    where = conditions[0]
    for other in conditions[1:]:
        where = b.call(fn.BIT_AND, where, other, dtype="bool")
    fill = float(value or 0.0) if self.dtype.startswith("float") else int(value or 0)
    return filled(b, taken_at(b, self, positions, seen, where), where, fill)


@rule("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def reflection_pad(b: Builder, self: Tensor, padding: Sequence[int]) -> Tensor:
    return pad(b, self, padding, "reflect")


@rule("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def replication_pad(b: Builder, self: Tensor, padding: Sequence[int]) -> Tensor:
    return pad(b, self, padding, "replicate")


def _bounded(b: Builder, mode: str, index: Value, count: Value | int) -> Value:
    """The position that a padded one stands for."""

    def of(function: fn.Function, *args: Value | int) -> Value:
        return b.computed(function, args, index.axes, "int64")

    if mode == "constant":
        return index
    last = _total(b, count, -1) if isinstance(count, int) else of_size(b, count)
    if mode == "reflect":
        return of(fn.SUB, last, of(fn.ABS, of(fn.SUB, last, of(fn.ABS, index))))
    if mode == "replicate":
        return of(fn.MINIMUM, of(fn.MAXIMUM, index, 0), last)
    require(mode == "circular", "padding in such a mode")
    return of(fn.MOD, of(fn.ADD, index, count), count)


def of_size(b: Builder, count: Value) -> Value:
    """The last position of a dimension of that size."""
    return b.computed(fn.SUB, (count, 1), (), "int64")


def _triangle(b: Builder, x: Tensor, function: fn.Function, diagonal: int) -> Tensor:
    rows, columns = index_of(b, x.dims[-2]), index_of(b, x.dims[-1])
    rows = Tensor(rows.value, (*rows.dims, ()))
    limit = rows if diagonal == 0 else b.call(fn.ADD, rows, diagonal, dtype="int64")
    kept = b.call(function, columns, limit, dtype="bool")
    return b.call(fn.WHERE, kept, x, b.zero)


@rule("tril.default")
def tril(b: Builder, self: Tensor, diagonal: int = 0) -> Tensor:
    return _triangle(b, self, fn.LE, diagonal)


@rule("triu.default")
def triu(b: Builder, self: Tensor, diagonal: int = 0) -> Tensor:
    return _triangle(b, self, fn.GE, diagonal)


@rule("diag.default", "diag_embed.default")
def diag(b: Builder, self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    require(offset == 0 and (dim1, dim2) == (-2, -1), "a shifted diagonal")
    require(len(self.dims) == 1 and bool(self.dims[0]), "the diagonal of a matrix")
    columns = index_of(b, new_dim(self.shape[0], "{0}", self.dims[0]))
    rows = index_of(b, self.dims[0])
    here = b.call(fn.EQ, Tensor(rows.value, (*rows.dims, ())), columns, dtype="bool")
    return b.call(fn.WHERE, here, Tensor(self.value, (*self.dims, ())), b.zero)


@rule("embedding.default")
def embedding(
    b: Builder, weight: Tensor, indices: Tensor, padding_idx: int = -1, *_: Any
) -> Tensor:
    return taken(b, weight, 0, indices)


@rule("index_select.default")
def index_select(b: Builder, self: Tensor, dim: int, index: Tensor) -> Tensor:
    return taken(b, self, dim, index)


@rule("index.Tensor")
def index(b: Builder, self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    given = [(dim, x) for dim, x in enumerate(indices) if x is not None]
    require(len(given) == 1 and given[0][1].dtype != "bool", "positions along several dimensions")
    dim, places = given[0]
    count = count_of(b, self.dims[dim])
    from_end = b.computed(fn.ADD, (places.value, count), places.value.axes, "int64")
    negative = _compare(b, fn.LT, places, 0)
    args = (negative.value, from_end, places.value)
    wrapped = b.computed(fn.WHERE, args, places.value.axes, "int64")
    return taken(b, self, dim, Tensor(wrapped, places.dims))


@rule("gather.default", "take_along_dim.default")
def gather(b: Builder, self: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Tensor:
    at = dim % len(self.dims)
    for place, (one, other) in enumerate(zip(self.dims, index.dims, strict=True)):
        if place != at:
            require(size_of(one) == size_of(other), "a gather from part of a tensor")
            unify(one, other) if one else None
    return taken_at(b, self, {at: index.value}, index.dims)


@rule("one_hot.default")
def one_hot(b: Builder, self: Tensor, num_classes: int = -1) -> Tensor:
    require(isinstance(num_classes, int) and num_classes > 1, "one-hot of unknown width")
    classes = index_of(b, (Axis(num_classes, literal=True),))
    here = b.call(fn.EQ, Tensor(self.value, (*self.dims, ())), classes, dtype="bool")
    return b.to(here, "int64")


@rule("repeat_interleave.self_int")
def repeat_interleave(b: Builder, self: Tensor, repeats: int, dim: int = 0, **_: Any) -> Tensor:
    return _stretched(b, self, dim % len(self.dims), repeats)


def _stretched(b: Builder, x: Tensor, dim: int, times: int) -> Tensor:
    """Each element `times` times along a dimension."""
    if times == 1:
        return x
    longer = new_dim(x.shape[dim] * times, f"{{0}} * {times}", x.dims[dim])
    index = index_of(b, longer)
    value = b.computed(fn.FLOOR_DIV, (index.value, times), index.value.axes, "int64")
    return taken(b, x, dim, Tensor(value, (longer,)))


@rule("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def upsample_nearest(
    b: Builder, input: Tensor, output_size: Any, scale_factors: Sequence[float] | None = None
) -> Tensor:
    require(output_size is None and scale_factors is not None, "an upsampling to a size")
    assert scale_factors is not None
    result = input
    for at, factor in enumerate(reversed(scale_factors), start=1):
        require(float(factor).is_integer() and _divides(int(factor)), "such a scale factor")
        result = _stretched(b, result, len(result.dims) - at, int(factor))
    return result


def _divides(factor: int) -> bool:
    """Whether torch's float32 product by 1 / factor floors as an integer division does."""
    single: float = struct.unpack("f", struct.pack("f", 1.0 / factor))[0]
    return single * factor >= 1.0


@rule("repeat.default")
def repeat(b: Builder, self: Tensor, repeats: Sequence[int]) -> Tensor:
    require(all(isinstance(n, int) for n in repeats), "a repetition by a size")
    more = len(repeats) - len(self.dims)
    result = Tensor(self.value, (*((),) * more, *self.dims))
    for dim, times in enumerate(repeats):
        if times == 1:
            continue
        longer = new_dim(result.shape[dim] * times, f"{{0}} * {times}", result.dims[dim])
        index = index_of(b, longer)
        count = count_of(b, result.dims[dim])
        value = b.computed(fn.MOD, (index.value, count), index.value.axes, "int64")
        result = taken(b, result, dim, Tensor(value, (longer,)))
    return result


def _constant(b: Builder, value: Number) -> Tensor:
    """A tensor of one number, of size one everywhere: what reads it repeats it."""
    number = float(value) if b.result.startswith("float") else int(value)
    kind = b.result
    made = b.computed(fn.constant(bool(value) if kind == "bool" else number), (), (), kind)
    return Tensor(made, ((),) * len(b.spec.shape))


@rule("zeros_like.default", "zeros.default")
def zeros(b: Builder, self: Any, **_: Any) -> Tensor:
    return _constant(b, 0)


@rule("ones_like.default", "ones.default")
def ones(b: Builder, self: Any, **_: Any) -> Tensor:
    return _constant(b, 1)


@rule("full_like.default", "full.default")
def full(b: Builder, self: Any, fill_value: Number, **_: Any) -> Tensor:
    require(isinstance(fill_value, int | float), "a number that is no constant")
    return _constant(b, fill_value)

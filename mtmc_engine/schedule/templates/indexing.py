"""Elements at computed positions: slices, mirrors, joins, look-ups and windows.

A tensor from outside is read there; what is computed in the group is computed anew there.
"""

# ruff: noqa: PLR0917 - what to read, where, and under which mask

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mtmc_engine.schedule.ops import Unsupported, require
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Axis, Dim, leaves
from mtmc_engine.schedule.templates.scans import scanned
from mtmc_engine.schedule.templates.tensors import Builder, Number, Tensor, Value, broadcast

# A position along one axis: a value, or an axis to walk along in its place.
Places = Mapping[Axis, Value]


def index_of(b: Builder, dim: Dim) -> Tensor:
    """The position along a dimension of more than one element."""
    over = leaves(dim)
    require(bool(over), "the position along a dimension of size one")
    key = ("index", *map(id, over))
    return Tensor(b.make(key, lambda: Value("index", over, "int64", over=over)), (dim,))


def new_dim(size: int, formula: str, *of: Dim) -> Dim:
    """A dimension that no tensor from outside has; its size follows from others."""
    return (Axis(size, formula=formula, of=of),) if size != 1 else ()


def mirrored(b: Builder, dim: Dim) -> Tensor:
    """The position counted from the end of a dimension."""
    index = index_of(b, dim)
    last = b.computed(fn.SUB, (b.counted(leaves(dim)), 1), (), "int64")
    return Tensor(b.computed(fn.SUB, (last, index.value), index.value.axes, "int64"), (dim,))


def shifted(b: Builder, index: Tensor, *, scale: int = 1, start: Number | Value = 0) -> Tensor:
    """index * scale + start."""
    value = index.value
    if scale != 1:
        value = b.computed(fn.MUL, (value, scale), value.axes, "int64")
    if isinstance(start, Value):
        value = b.computed(fn.ADD, (value, start), value.axes, "int64")
    elif start < 0:
        value = b.computed(fn.SUB, (value, -start), value.axes, "int64")
    elif start > 0:
        value = b.computed(fn.ADD, (value, start), value.axes, "int64")
    return Tensor(value, index.dims)


def taken(b: Builder, tensor: Tensor, dim: int, index: Tensor, hint: str = "") -> Tensor:
    """The tensor at positions along one dimension, which the dimensions of `index` replace."""
    dim %= len(tensor.dims)
    dims = (*tensor.dims[:dim], *index.dims, *tensor.dims[dim + 1 :])
    return taken_at(b, tensor, {dim: index.value}, dims, hint=hint)


def taken_at(
    b: Builder,
    tensor: Tensor,
    positions: Mapping[int, Value],
    dims: tuple[Dim, ...],
    where: Tensor | None = None,
    hint: str = "",
) -> Tensor:
    """The tensor at positions along some dimensions, seen with the dimensions `dims`.

    Elements where not `where` are not read; what stands there is unknown.
    """
    places: dict[Axis, Value] = {}
    for dim, index in positions.items():
        axes = leaves(tensor.dims[dim])
        require(len(axes) <= 1, "a position along joined dimensions")
        places.update(dict.fromkeys(axes, index))
    mask = where.value if where is not None else None
    return Tensor(_Move(b, places, mask, hint).of(tensor.value), dims)


def filled(b: Builder, tensor: Tensor, where: Tensor, other: Number) -> Tensor:
    """The tensor where `where` holds, `other` elsewhere; nothing is read there."""
    value = tensor.value
    if value.kind == "pick" and value.masked and value.args[-1] is where.value:
        dims = tensor.dims
        return Tensor(_pick(b, value.source, _places(value), where.value, other), dims)
    return b.call(fn.WHERE, where, tensor, other, dtype=value.dtype)


def gather(
    b: Builder, table: Tensor, dim: int, index: Tensor, where: Tensor | None, hint: str
) -> Tensor:
    """Elements of a loaded tensor at one position along `dim`, zero where not `where`.

    index, where: without that dimension. Raises Unsupported where `table` is computed.
    """
    require(table.value.kind == "load", "an element is picked from a computed tensor")
    at = b.storage(table)[dim % len(table.dims)]
    kept = b.without(table, [dim])
    dims = broadcast([kept, index] if where is None else [kept, index, where])
    stored = b.loads[table.value.source].dims
    places: list[Dim | Value] = [leaves(place) for place in stored]
    places[at] = index.value
    mask = where.value if where is not None else None
    return Tensor(_pick(b, table.value.source, places, mask, 0.0, hint), dims)


def _places(value: Value) -> list[Dim | Value]:
    """Where a pick or a load reads, dimension by dimension."""
    found: list[Dim | Value] = []
    for place in value.at:
        arg = value.args[place] if isinstance(place, int) else leaves(place)
        assert isinstance(arg, Value | tuple)
        found.append(arg)
    return found


def _pick(
    b: Builder,
    source: str,
    at: Sequence[Dim | Value],
    where: Value | None,
    other: Number | None = None,
    hint: str = "",
) -> Value:
    """The value that reads `source` there; the plain load where that is every element."""
    table = b.loads[source]
    places = [
        own
        if isinstance(place, Value) and place.kind == "index" and leaves(place.over) == own
        else place
        for place, own in zip(at, (leaves(dim) for dim in table.dims), strict=True)
    ]
    if where is None and places == [leaves(dim) for dim in table.dims]:
        return table.value
    args: list[Value] = []
    marks: list[Dim | int] = []
    axes: list[Axis] = []
    for place in places:
        if isinstance(place, Value):
            marks.append(len(args))
            args.append(place)
            axes += place.axes
        else:
            marks.append(place)
            axes += place
    if where is not None:
        args.append(where)
        axes += where.axes
    key = ("pick", source, *(id(p) if isinstance(p, Value) else tuple(map(id, p)) for p in places))
    return b.make(
        (*key, id(where), other),
        lambda: Value(
            "pick",
            tuple(dict.fromkeys(leaves(tuple(axes)))),
            table.dtype,
            tuple(args),
            source=source,
            at=tuple(marks),
            masked=where is not None,
            other=other,
            hint=hint,
        ),
    )


class _Move:
    """Computes values anew with positions in place of some axes."""

    def __init__(self, b: Builder, places: Places, where: Value | None, hint: str) -> None:
        self.hint = hint
        self.b = b
        self.places = places
        self.where = where
        self.known: dict[Value, Value] = {}

    def of(self, value: Value) -> Value:
        """The value there; itself where it does not vary along the axes."""
        if not set(leaves(value.axes)) & self.places.keys():
            return value
        if value not in self.known:
            self.known[value] = self._moved(value)
        return self.known[value]

    def _moved(self, value: Value) -> Value:
        if value.kind == "index":
            return self._position(leaves(value.over))
        if value.kind == "compute":
            return self._computed(value)
        if value.kind == "load":
            dims = self.b.loads[value.source].dims
            return self._read(value.source, [leaves(dim) for dim in dims], None, None)
        if value.kind == "pick":
            at = _places(value)
            mask = value.args[-1] if value.masked else None
            assert mask is None or isinstance(mask, Value)
            return self._read(value.source, at, mask, value.other)
        if value.kind == "scan":
            return self._scanned(value)
        raise Unsupported(f"a {value.kind} at other positions")

    def _read(
        self, source: str, at: Sequence[Dim | Value], mask: Value | None, other: Number | None
    ) -> Value:
        places: list[Dim | Value] = []
        for place in at:
            if isinstance(place, Value):
                places.append(self.of(place))
            else:
                moved = set(place) & self.places.keys()
                places.append(self._position(place) if moved else place)
        mask = self.of(mask) if mask is not None else None
        if self.where is None:
            return _pick(self.b, source, places, mask, other, self.hint)
        if mask is None:
            return _pick(self.b, source, places, self.where, other, self.hint)
        axes = tuple(dict.fromkeys(leaves(mask.axes + self.where.axes)))
        both = self.b.computed(fn.BIT_AND, (mask, self.where), axes, "bool")
        return _pick(self.b, source, places, both, other, self.hint)

    def _position(self, axes: Dim) -> Value:
        """The position along axes that are stored side by side."""
        found: Value | None = None
        for axis in axes:
            here = self.places.get(axis) or index_of(self.b, (axis,)).value
            if found is not None:
                scaled = self.b.computed(
                    fn.MUL, (found, self.b.counted((axis,))), found.axes, "int64"
                )
                both = tuple(dict.fromkeys(scaled.axes + here.axes))
                here = self.b.computed(fn.ADD, (scaled, here), both, "int64")
            found = here
        assert found is not None
        return found

    def _computed(self, value: Value) -> Value:
        assert value.function is not None
        args = tuple(self.of(arg) if isinstance(arg, Value) else arg for arg in value.args)
        if value.function is fn.SUB and value.dtype == "int64":
            undone = _twice_mirrored(args)
            if undone is not None:
                return undone
        axes: list[Axis] = []
        for axis in leaves(value.axes):
            place = self.places.get(axis)
            axes += [axis] if place is None else leaves(place.axes)
        merged = tuple(dict.fromkeys(axes))
        return self.b.computed(value.function, args, merged, value.dtype, value.hint)

    def _scanned(self, value: Value) -> Value:
        """A scan at mirrored positions is the scan of the mirrored values from the other end."""
        operand = value.operands[0]
        over = leaves(value.over)
        moved = [axis for axis in over if axis in self.places]
        reverse = value.reverse
        if moved:
            require(moved == list(over) and len(over) == 1, "a scan at other positions")
            last = mirrored(self.b, over).value
            require(self.places[over[0]] is last, "a scan at other positions")
            reverse = not reverse
        return scanned(self.b, value.fold, self.of(operand), over, reverse=reverse)


def _twice_mirrored(args: tuple[Value | Number, ...]) -> Value | None:
    """x of "last - (last - x)"."""
    last, inner = args
    if isinstance(inner, Value) and inner.function is fn.SUB and inner.args[0] is last:
        found = inner.args[1]
        return found if isinstance(found, Value) else None
    return None

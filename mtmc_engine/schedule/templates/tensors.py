"""A group of nodes as a small tensor program: loads, pointwise functions, reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Axis, Dim, leaves, size_of, unify
from mtmc_engine.schedule.templates.functions import Function
from mtmc_engine.schedule.templates.sizes import SizeText, axis_of

Number = int | float | bool
Order = tuple[int, ...]
Kind = Literal["load", "compute", "reduce", "scan", "count", "index", "pick", "matmul"]
Band = Literal["", "lower", "upper"]
Fold = Literal["sum", "prod", "max", "min", "argmax", "argmin"]

_RANK = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")


@dataclass(eq=False, frozen=True)
class Value:
    """One element-wise quantity of a group. Two values are equal only if they are one object.

    kind:   "load" reads the graph value `source`; "compute" applies `function` to `args`;
            "reduce" folds its argument over the axes `over` by `fold`; "scan" keeps what the fold
            is up to each position, from the end where `reverse`; "count" is the number of
            elements along `over`, "index" the position there; "pick" reads `source` at the places
            `at`; "matmul" is a matrix product of two tensors.
    axes:   what it varies along; for loads in storage order.
    dtype:  type inside the kernel: half types are computed in float32.
    at:     of a pick, for each dimension of the storage the axes that walk through it, or the
            argument that holds the position. `masked`: the last argument says where to read;
            elsewhere the value is `other`, or of no interest.
    hint:   what a reader would call it; "~" before it: only where it needs a name at all.
    """

    kind: Kind
    axes: Dim
    dtype: str
    args: tuple[Value | Number, ...] = ()
    function: Function | None = None
    fold: Fold = "sum"
    over: Dim = ()
    source: str = ""
    product: Product | None = None
    at: tuple[Dim | int, ...] = ()
    masked: bool = False
    other: Number | None = None
    reverse: bool = False
    hint: str = ""

    @property
    def word(self) -> str:
        """The hint as a name."""
        return self.hint.removeprefix("~")

    @property
    def operands(self) -> tuple[Value, ...]:
        """The arguments that are values."""
        return tuple(arg for arg in self.args if isinstance(arg, Value))


@dataclass(frozen=True)
class Product:
    """Operands of a matrix product: graph values, and their dimensions by role.

    left, right: [rows, k] and [k, columns], where `rows` and `k` are positions of dimensions in
                 storage. More dimensions of the left one are joined with its rows, or, where
                 `batched`, the leading dimensions of both count products.
    band:        the triangle of the left one, its diagonal included, that counts.
    """

    left: str
    right: str
    left_rows: int
    left_k: int
    right_k: int
    right_columns: int
    batched: bool = False
    band: Band = ""


@dataclass(frozen=True)
class Tensor:
    """A value laid out in dimensions. Views change the dimensions only and cost no code."""

    value: Value
    dims: tuple[Dim, ...]

    @property
    def dtype(self) -> str:
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(size_of(dim) for dim in self.dims)

    def axes_of(self, dims: Sequence[int]) -> Dim:
        """Axes of some dimensions, in order; `dims` () means all of them."""
        return tuple(axis for dim in self.positions(dims) for axis in leaves(self.dims[dim]))

    def positions(self, dims: Sequence[int]) -> list[int]:
        """Dimensions as sorted, non-negative positions; () means all of them."""
        rank = len(self.dims)
        return sorted({dim % rank for dim in dims} if dims else range(rank))


Operand = Tensor | Number


def kernel_dtype(dtype: str) -> str:
    """The type that a kernel computes in for values stored as `dtype`."""
    if dtype in ("float16", "bfloat16"):
        return "float32"
    if dtype not in _RANK:
        raise Unsupported(f"{dtype} has no kernel type")
    return dtype


def promote(*dtypes: str) -> str:
    """The widest of several kernel types."""
    return max(dtypes, key=_RANK.index)


def is_float(dtype: str) -> bool:
    return dtype.startswith("float")


def broadcast(tensors: Sequence[Tensor]) -> tuple[Dim, ...]:
    """Dimensions of a pointwise result; unifies those of the operands."""
    rank = max((len(tensor.dims) for tensor in tensors), default=0)
    dims: list[Dim] = []
    for back in range(-rank, 0):
        present = [t.dims[back] for t in tensors if len(t.dims) >= -back and t.dims[back]]
        for other in present[1:]:
            unify(present[0], other)
        dims.append(present[0] if present else ())
    return tuple(dims)


@dataclass
class Builder:
    """Makes the values of one group; equal computations become one value.

    values: in order of creation. loads: tensors that enter the group, by graph value.
    specs:  of the results of the node that is being expanded; `spec` is the first.
    symbols: value of each symbol of the varying dimensions.
    orders: dimensions of loads as they lie in memory, where that is not their own order.
    """

    values: list[Value] = field(default_factory=list)
    loads: dict[str, Tensor] = field(default_factory=dict)
    specs: tuple[TensorSpec, ...] = (TensorSpec((), "float32"),)
    symbols: Mapping[str, int] = field(default_factory=dict)
    orders: Mapping[str, Order] = field(default_factory=dict)
    _shown: dict[str, Axis] = field(default_factory=dict)
    _seen: dict[tuple[object, ...], Value] = field(default_factory=dict)

    @property
    def spec(self) -> TensorSpec:
        return self.specs[0]

    @property
    def zero(self) -> Number:
        """Zero in the type of the node that is being expanded."""
        return 0.0 if is_float(self.result) else 0

    def axis(self, text: str) -> Axis:
        """An axis whose size is an expression over symbols that the group's tensors show."""
        return axis_of(text, self.symbols, self._shown)

    @property
    def result(self) -> str:
        """Kernel type of the node that is being expanded."""
        return kernel_dtype(self.spec.dtype)

    def make(self, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
        """The value of a computation, made where the group has none with that key."""
        if key not in self._seen:
            value = make()
            self._seen[key] = value
            self.values.append(value)
        return self._seen[key]

    def load(self, source: str, spec: TensorSpec) -> Tensor:
        """A tensor that enters the group."""
        texts = spec.dims or tuple(map(str, spec.shape))
        dims = tuple(
            () if size == 1 else (Axis(size, literal=text.isdigit()),)
            for size, text in zip(spec.shape, texts, strict=True)
        )
        stored = tuple(dims[dim] for dim in self.orders.get(source) or range(len(dims)))
        axes = tuple(axis for dim in stored for axis in dim)
        for dim, text in zip(dims, texts, strict=True):
            if dim:
                self._shown.setdefault(text, dim[0])
        dtype = kernel_dtype(spec.dtype)
        value = self.make(("load", source), lambda: Value("load", axes, dtype, source=source))
        self.loads[source] = Tensor(value, stored)
        return Tensor(value, dims)

    def storage(self, tensor: Tensor) -> list[int]:
        """For each dimension of a loaded tensor, which dimension of its storage it is.

        Raises Unsupported where a view has joined or split dimensions.
        """
        stored = self.loads[tensor.value.source].dims
        places = {id(dim[0]): at for at, dim in enumerate(stored) if dim}
        found = [places.get(id(dim[0]), -1) if len(dim) == 1 else -1 for dim in tensor.dims]
        if -1 in found:
            raise Unsupported("a matrix that is a view of joined dimensions")
        return found

    def call(
        self, function: Function, *args: Operand, dtype: str | None = None, hint: str = ""
    ) -> Tensor:
        """A pointwise function of broadcast operands. dtype None: that of the current node."""
        dtype = dtype or self.result
        args = tuple(
            Tensor(self.counted((self.axis(arg),)), ()) if isinstance(arg, SizeText) else arg
            for arg in args
        )
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        dims = broadcast(tensors)
        axes = tuple(dict.fromkeys(axis for dim in dims for axis in leaves(dim)))
        plain = tuple(arg.value if isinstance(arg, Tensor) else arg for arg in args)
        return Tensor(self.computed(function, plain, axes, dtype, hint), dims)

    def computed(
        self,
        function: Function,
        args: tuple[Value | Number, ...],
        axes: Dim,
        dtype: str,
        hint: str = "",
    ) -> Value:
        """A pointwise function of values that varies along `axes`."""
        key = ("call", function.text, dtype, *map(_key, args), *map(id, axes))
        return self.make(
            key, lambda: Value("compute", axes, dtype, args, function=function, hint=hint)
        )

    def arith(
        self, function: Function, *args: Operand, dtype: str | None = None, hint: str = ""
    ) -> Tensor:
        """As `call`, with integers and booleans converted where the result needs it."""
        dtype = dtype or self.result
        converted = [self.converted(arg, dtype) for arg in args]
        return self.call(function, *converted, dtype=dtype, hint=hint)

    def converted(self, operand: Operand, dtype: str) -> Operand:
        """The operand in kernel type `dtype`; Triton itself widens among integers or floats."""
        if not isinstance(operand, Tensor) or _is_size(operand.value):
            return operand
        same_kind = is_float(operand.dtype) == is_float(dtype)
        if same_kind and "bool" not in (operand.dtype, dtype):
            return operand
        return self.to(operand, dtype)

    def to(self, operand: Tensor, dtype: str) -> Tensor:
        """Explicit conversion to a kernel type."""
        if operand.dtype == dtype:
            return operand
        return self.call(fn.cast(dtype), operand, dtype=dtype, hint=f"~{operand.value.word}")

    def compare(self, function: Function, left: Operand, right: Operand) -> Tensor:
        """A comparison; its result is boolean."""
        dtype = promote(_dtype(left), _dtype(right))
        return self.call(
            function, self.converted(left, dtype), self.converted(right, dtype), dtype="bool"
        )

    def reduce(
        self,
        fold: Fold,
        tensor: Tensor,
        dims: Sequence[int] = (),
        keepdim: bool = True,
        hint: str = "",
    ) -> Tensor:
        """Folds dimensions; `dims` () means all of them."""
        folded = tensor.positions(dims)
        over = tensor.axes_of(dims)
        value = tensor.value
        if over:
            axes = tuple(axis for axis in tensor.axes_of(()) if axis not in over)
            key = ("reduce", fold, id(value), *map(id, over))
            value = self.make(
                key,
                lambda: Value(
                    "reduce", axes, value.dtype, (value,), fold=fold, over=over, hint=hint
                ),
            )
        kept = tuple(() if at in folded else dim for at, dim in enumerate(tensor.dims))
        reduced = Tensor(value, kept)
        return reduced if keepdim else self.without(reduced, folded)

    def without(self, tensor: Tensor, dims: Sequence[int]) -> Tensor:
        """The tensor with dimensions of size one removed."""
        dims = [dim % len(tensor.dims) for dim in dims]
        kept = tuple(dim for at, dim in enumerate(tensor.dims) if at not in dims)
        return Tensor(tensor.value, kept)

    def count(self, tensor: Tensor, dims: Sequence[int] = ()) -> Operand:
        """Number of elements along some dimensions; `dims` () means all of them."""
        over = tensor.axes_of(dims)
        return Tensor(self.counted(over), ()) if over else 1

    def counted(self, over: Dim) -> Value:
        """The number of elements along axes."""
        key = ("count", *map(id, over))
        return self.make(key, lambda: Value("count", (), "int32", over=over))

    def multiply(self, product: Product, axes: Dim) -> Value:
        """The matrix product as a value over its rows and columns."""
        kind = self.result
        return self.make(
            ("matmul", product),
            lambda: Value("matmul", axes, kind, product=product, hint="acc"),
        )


def _is_size(value: Value) -> bool:
    """Whether a value is a number of elements, which arithmetic takes as it is."""
    if value.kind == "compute":
        return bool(value.operands) and all(map(_is_size, value.operands))
    return value.kind == "count"


def _key(arg: Value | Number) -> object:
    return id(arg) if isinstance(arg, Value) else (type(arg).__name__, arg)


def _dtype(arg: Operand) -> str:
    if isinstance(arg, Tensor):
        return arg.dtype
    if isinstance(arg, bool):
        return "bool"
    return "uint8" if isinstance(arg, int) else "float32"

"""A group of nodes as a small tensor program: loads, pointwise functions, reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Axis, Dim, leaves, size_of, unify
from mtmc_engine.schedule.templates.functions import Function

Number = int | float | bool
Kind = Literal["load", "compute", "reduce", "count", "gather", "matmul"]
Fold = Literal["sum", "max", "min"]

_RANK = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")


@dataclass(eq=False, frozen=True)
class Value:
    """One element-wise quantity of a group. Two values are equal only if they are one object.

    kind:   "load" reads the graph value `source`; "compute" applies `function` to `args`;
            "reduce" folds its argument over the axes `over` by `fold`; "count" is the number of
            elements along `over`; "gather" reads `source` at position args[0] of the axis
            `over`, where args[1] holds; "matmul" is a matrix product of two tensors.
    axes:   what it varies along; for loads and gathers in storage order.
    dtype:  type inside the kernel: half types are computed in float32.
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
    """

    left: str
    right: str
    left_rows: int
    left_k: int
    right_k: int
    right_columns: int
    batched: bool = False


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
    spec:   of the first result of the node that is being expanded.
    """

    values: list[Value] = field(default_factory=list)
    loads: dict[str, Tensor] = field(default_factory=dict)
    spec: TensorSpec = field(default_factory=lambda: TensorSpec((), "float32"))
    _seen: dict[tuple[object, ...], Value] = field(default_factory=dict)

    @property
    def result(self) -> str:
        """Kernel type of the node that is being expanded."""
        return kernel_dtype(self.spec.dtype)

    def _make(self, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
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
        axes = tuple(axis for dim in dims for axis in dim)
        dtype = kernel_dtype(spec.dtype)
        value = self._make(("load", source), lambda: Value("load", axes, dtype, source=source))
        self.loads[source] = Tensor(value, dims)
        return self.loads[source]

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
        if any(isinstance(arg, str) for arg in args):
            raise Unsupported("a size takes part in the arithmetic")
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        dims = broadcast(tensors)
        axes = tuple(dict.fromkeys(axis for dim in dims for axis in leaves(dim)))
        plain = tuple(arg.value if isinstance(arg, Tensor) else arg for arg in args)
        key = ("call", function.text, dtype, *map(_key, plain), *map(id, axes))
        value = self._make(
            key, lambda: Value("compute", axes, dtype, plain, function=function, hint=hint)
        )
        return Tensor(value, dims)

    def arith(
        self, function: Function, *args: Operand, dtype: str | None = None, hint: str = ""
    ) -> Tensor:
        """As `call`, with integers and booleans converted where the result needs it."""
        dtype = dtype or self.result
        converted = [self.converted(arg, dtype) for arg in args]
        return self.call(function, *converted, dtype=dtype, hint=hint)

    def converted(self, operand: Operand, dtype: str) -> Operand:
        """The operand in kernel type `dtype`; Triton itself widens among integers or floats."""
        if not isinstance(operand, Tensor) or operand.value.kind == "count":
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
            value = self._make(
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
        if not over:
            return 1
        key = ("count", *map(id, over))
        return Tensor(self._make(key, lambda: Value("count", (), "int32", over=over)), ())

    def gather(self, table: Tensor, dim: int, index: Tensor, where: Tensor, hint: str) -> Tensor:
        """Elements of a loaded tensor at one position along `dim`, zero where not `where`.

        index, where: without that dimension. Raises Unsupported where `table` is computed.
        """
        if table.value.kind != "load":
            raise Unsupported("an element is picked from a computed tensor")
        dim %= len(table.dims)
        over = leaves(table.dims[dim])
        kept = self.without(Tensor(table.value, table.dims), [dim])
        dims = broadcast([kept, index, where])
        axes = tuple(axis for d in dims for axis in leaves(d))
        key = ("gather", id(table.value), id(index.value), id(where.value))
        value = self._make(
            key,
            lambda: Value(
                "gather",
                axes,
                table.dtype,
                (index.value, where.value),
                over=over,
                source=table.value.source,
                hint=hint,
            ),
        )
        return Tensor(value, dims)

    def multiply(self, product: Product, axes: Dim) -> Value:
        """The matrix product as a value over its rows and columns."""
        kind = self.result
        return self._make(
            ("matmul", product),
            lambda: Value("matmul", axes, kind, product=product, hint="acc"),
        )


def _key(arg: Value | Number) -> object:
    return id(arg) if isinstance(arg, Value) else (type(arg).__name__, arg)


def _dtype(arg: Operand) -> str:
    if isinstance(arg, Tensor):
        return arg.dtype
    if isinstance(arg, bool):
        return "bool"
    return "uint8" if isinstance(arg, int) else "float32"

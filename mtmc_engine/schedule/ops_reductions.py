"""Rules of reductions and of the softmax family."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.ops_arithmetic import power
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.tensors import Builder, Fold, Number, Tensor, is_float

Dims = Sequence[int] | int | None


def dims_of(dim: Dims) -> tuple[int, ...]:
    """ATen's dimension argument as a tuple; () means all."""
    if dim is None:
        return ()
    return (dim,) if isinstance(dim, int) else tuple(dim)


def float_kind(x: Tensor) -> str:
    """Kernel type of a normalisation: at least float32."""
    return x.dtype if is_float(x.dtype) else "float32"


def _sum(b: Builder, x: Tensor, dims: Sequence[int], keepdim: bool, hint: str) -> Tensor:
    kind = b.result if not is_float(x.dtype) else x.dtype
    return b.reduce("sum", b.to(x, kind), dims, keepdim, hint)


@rule("sum.dim_IntList", "sum.default")
def sum_dims(
    b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return b.to(_sum(b, self, dims_of(dim), keepdim, "total"), b.result)


@rule("mean.dim", "mean.default")
def mean_dims(
    b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return mean(b, self, dims_of(dim), keepdim)


def mean(
    b: Builder, x: Tensor, dims: Sequence[int], keepdim: bool = True, hint: str = "mean"
) -> Tensor:
    """Arithmetic mean over dimensions, () meaning all."""
    total = b.reduce("sum", x, dims, keepdim)
    return b.arith(fn.DIV, total, b.count(x, dims), dtype=float_kind(x), hint=hint)


def _extreme(fold: Fold) -> Any:
    def expand(b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        require(self.dtype != "bool", "extreme of booleans")
        return b.reduce(fold, self, dims_of(dim), keepdim, f"row_{fold}")

    return expand


rule("amax.default", "max.default")(_extreme("max"))
rule("amin.default", "min.default")(_extreme("min"))


def _extreme_along(fold: Fold, position: Fold) -> Any:
    def expand(b: Builder, self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        require(self.dtype != "bool", "extreme of booleans")
        return (
            b.reduce(fold, self, (dim,), keepdim, f"row_{fold}"),
            _position(b, position, self, (dim,), keepdim),
        )

    return expand


rule("max.dim")(_extreme_along("max", "argmax"))
rule("min.dim")(_extreme_along("min", "argmin"))


def _position(b: Builder, fold: Fold, x: Tensor, dims: Dims, keepdim: bool) -> Tensor:
    """Where the extreme is; the first of equal ones."""
    if not x.axes_of(dims_of(dims)):
        zero = Tensor(b.computed(fn.constant(0), (), (), "int64"), ((),) * len(x.dims))
        return zero if keepdim else b.without(zero, x.positions(dims_of(dims)))
    return b.reduce(fold, x, dims_of(dims), keepdim, "position")


def _position_rule(fold: Fold) -> Any:
    def expand(b: Builder, self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        require(self.dtype != "bool", "extreme of booleans")
        require(dim is not None or len(self.dims) == 1, "the position in a whole tensor")
        return _position(b, fold, self, 0 if dim is None else dim, keepdim)

    return expand


rule("argmax.default")(_position_rule("argmax"))
rule("argmin.default")(_position_rule("argmin"))


@rule("prod.dim_int", "prod.default")
def prod(
    b: Builder, self: Tensor, dim: int | None = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return b.to(b.reduce("prod", b.to(self, b.result), dims_of(dim), keepdim, "product"), b.result)


@rule("any.dim", "any.default", "any.dims")
def any_dims(b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    truth = b.to(b.to(self, "bool"), "int32")
    # Of no elements none is true, and the largest is below zero.
    return b.compare(fn.GT, b.reduce("max", truth, dims_of(dim), keepdim), 0)


@rule("all.dim", "all.default", "all.dims")
def all_dims(b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    truth = b.to(b.to(self, "bool"), "int32")
    return b.to(b.reduce("min", truth, dims_of(dim), keepdim), "bool")


def moments(b: Builder, x: Tensor, dims: Sequence[int], kind: str) -> tuple[Tensor, Tensor]:
    """The centred values and the sum of their squares."""
    average = mean(b, x, dims)
    centred = b.arith(fn.SUB, x, average, dtype=kind, hint="centred")
    square = b.arith(fn.MUL, centred, centred, dtype=kind)
    return centred, b.reduce("sum", square, dims)


@rule("var.dim", "var.correction", "var.default")
def variance(
    b: Builder,
    self: Tensor,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: Number | None = None,
) -> Tensor:
    if isinstance(dim, bool):  # var.default takes only `unbiased`
        unbiased, dim = dim, None
    less = correction if correction is not None else int(unbiased)
    dims = dims_of(dim)
    _, squares = moments(b, self, dims, float_kind(self))
    count = b.count(self, dims)
    if less != 0:
        count = (
            b.call(fn.SUB, count, less, dtype="int32") if isinstance(count, Tensor) else 1 - less
        )
    result = b.arith(fn.DIV, squares, count, dtype=float_kind(self), hint="variance")
    return result if keepdim else b.without(result, self.positions(dims))


@rule("std.dim", "std.correction", "std.default")
def deviation(b: Builder, self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return b.arith(fn.SQRT, variance(b, self, *args, **kwargs), hint="std")


@rule("var_mean.correction", "var_mean.dim")
def variance_mean(
    b: Builder,
    self: Tensor,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: Number | None = None,
) -> tuple[Tensor, Tensor]:
    return (
        variance(b, self, dim, unbiased, keepdim, correction),
        mean(b, self, dims_of(dim), keepdim),
    )


@rule("std_mean.correction", "std_mean.dim")
def deviation_mean(b: Builder, self: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    spread, average = variance_mean(b, self, *args, **kwargs)
    return b.arith(fn.SQRT, spread, hint="std"), average


@rule("linalg_vector_norm.default", "norm.ScalarOpt_dim", "norm.Scalar")
def vector_norm(
    b: Builder,
    self: Tensor,
    ord: Number | None = 2,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Tensor:
    dims = dims_of(dim)
    if ord is None or ord == 2:
        squares = b.arith(fn.MUL, self, self)
        return b.arith(fn.SQRT, b.reduce("sum", squares, dims, keepdim), hint="norm")
    size = b.call(fn.ABS, self)
    if ord == 1:
        return b.reduce("sum", size, dims, keepdim, "norm")
    if ord in (float("inf"), -float("inf")):
        return b.reduce("max" if ord > 0 else "min", size, dims, keepdim, "norm")
    if ord == 0:
        return b.reduce("sum", b.to(b.compare(fn.NE, self, 0.0), size.dtype), dims, keepdim, "norm")
    require(ord in (3, 4), "a norm of that order")
    total = b.reduce("sum", power(b, size, ord), dims, keepdim, "total")
    if ord == 4:
        return b.arith(fn.SQRT, b.arith(fn.SQRT, total), hint="norm")
    root = b.arith(fn.EXP2, b.arith(fn.DIV, b.arith(fn.LOG2, total), 3.0), hint="~norm")
    return b.call(fn.WHERE, b.compare(fn.GT, total, 0.0), root, 0.0)


def _exponentials(b: Builder, x: Tensor, dims: Sequence[int], kind: str) -> tuple[Tensor, Tensor]:
    """Largest value and the exponentials relative to it."""
    top = b.reduce("max", x, dims, hint="row_max")
    shifted = b.arith(fn.SUB, x, top, dtype=kind, hint="~shifted")
    return top, shifted


@rule("softmax.int", "_softmax.default")
def softmax(b: Builder, self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    kind = float_kind(self)
    _, shifted = _exponentials(b, b.to(self, kind), (dim,), kind)
    numerator = b.call(fn.EXP, shifted, dtype=kind, hint="numerator")
    denominator = b.reduce("sum", numerator, (dim,), hint="denominator")
    return b.call(fn.DIV, numerator, denominator, dtype=kind, hint="~softmax")


@rule("log_softmax.int", "_log_softmax.default")
def log_softmax(b: Builder, self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    kind = float_kind(self)
    _, shifted = _exponentials(b, b.to(self, kind), (dim,), kind)
    denominator = b.reduce("sum", b.call(fn.EXP, shifted, dtype=kind), (dim,), hint="denominator")
    return b.call(fn.SUB, shifted, b.call(fn.LOG, denominator, dtype=kind), dtype=kind)


@rule("logsumexp.default")
def logsumexp(b: Builder, self: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    kind = float_kind(self)
    dims = dims_of(dim)
    result = log_sum_exp(b, b.to(self, kind), dims, kind)
    return result if keepdim else b.without(result, self.positions(dims))


def log_sum_exp(b: Builder, x: Tensor, dims: Sequence[int], kind: str) -> Tensor:
    """Logarithm of the sum of exponentials, dimensions kept with size one."""
    top, shifted = _exponentials(b, x, dims, kind)
    total = b.reduce("sum", b.call(fn.EXP, shifted, dtype=kind), dims, hint="denominator")
    return b.call(fn.ADD, top, b.call(fn.LOG, total, dtype=kind), dtype=kind, hint="~log_sum_exp")

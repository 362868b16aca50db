"""Rules of reductions, softmax, normalisations and losses."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtmc_engine.schedule import ops_pointwise as pointwise
from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Axis, unify
from mtmc_engine.schedule.templates.tensors import (
    Builder,
    Fold,
    Number,
    Tensor,
    is_float,
)

Dims = Sequence[int] | int | None


def _dims(dim: Dims) -> tuple[int, ...]:
    """ATen's dimension argument as a tuple; () means all."""
    if dim is None:
        return ()
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _kind(x: Tensor) -> str:
    """Kernel type of a normalisation: at least float32."""
    return x.dtype if is_float(x.dtype) else "float32"


def _sum(b: Builder, x: Tensor, dims: Sequence[int], keepdim: bool, hint: str) -> Tensor:
    kind = b.result if not is_float(x.dtype) else x.dtype
    return b.reduce("sum", b.to(x, kind), dims, keepdim, hint)


@rule("sum.dim_IntList", "sum.default")
def sum_dims(
    b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return b.to(_sum(b, self, _dims(dim), keepdim, "total"), b.result)


@rule("mean.dim", "mean.default")
def mean_dims(
    b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return mean(b, self, _dims(dim), keepdim)


def mean(
    b: Builder, x: Tensor, dims: Sequence[int], keepdim: bool = True, hint: str = "mean"
) -> Tensor:
    """Arithmetic mean over dimensions, () meaning all."""
    total = b.reduce("sum", x, dims, keepdim)
    return b.arith(fn.DIV, total, b.count(x, dims), dtype=_kind(x), hint=hint)


def _extreme(fold: Fold) -> Any:
    def expand(b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        require(self.dtype != "bool", "extreme of booleans")
        return b.reduce(fold, self, _dims(dim), keepdim, f"row_{fold}")

    return expand


rule("amax.default", "max.default")(_extreme("max"))
rule("amin.default", "min.default")(_extreme("min"))


def _extreme_along(fold: Fold) -> Any:
    def expand(b: Builder, self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, None]:
        require(self.dtype != "bool", "extreme of booleans")
        return b.reduce(fold, self, (dim,), keepdim, f"row_{fold}"), None

    return expand


rule("max.dim")(_extreme_along("max"))
rule("min.dim")(_extreme_along("min"))


@rule("any.dim", "any.default", "any.dims")
def any_dims(b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    truth = b.to(b.to(self, "bool"), "int32")
    return b.to(b.reduce("max", truth, _dims(dim), keepdim), "bool")


@rule("all.dim", "all.default", "all.dims")
def all_dims(b: Builder, self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    truth = b.to(b.to(self, "bool"), "int32")
    return b.to(b.reduce("min", truth, _dims(dim), keepdim), "bool")


def _moments(b: Builder, x: Tensor, dims: Sequence[int], kind: str) -> tuple[Tensor, Tensor]:
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
    dims = _dims(dim)
    _, squares = _moments(b, self, dims, _kind(self))
    count = b.count(self, dims)
    if less != 0:
        count = (
            b.call(fn.SUB, count, less, dtype="int32") if isinstance(count, Tensor) else 1 - less
        )
    result = b.arith(fn.DIV, squares, count, dtype=_kind(self), hint="variance")
    return result if keepdim else b.without(result, self.positions(dims))


@rule("std.dim", "std.correction", "std.default")
def deviation(b: Builder, self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return b.arith(fn.SQRT, variance(b, self, *args, **kwargs), hint="std")


@rule("linalg_vector_norm.default", "norm.ScalarOpt_dim", "norm.Scalar")
def vector_norm(
    b: Builder,
    self: Tensor,
    ord: Number | None = 2,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Tensor:
    dims = _dims(dim)
    if ord is None or ord == 2:
        squares = b.arith(fn.MUL, self, self)
        return b.arith(fn.SQRT, b.reduce("sum", squares, dims, keepdim), hint="norm")
    size = b.call(fn.ABS, self)
    if ord == 1:
        return b.reduce("sum", size, dims, keepdim, "norm")
    require(ord in (float("inf"), "inf"), "a norm of that order")
    return b.reduce("max", size, dims, keepdim, "norm")


def _exponentials(b: Builder, x: Tensor, dims: Sequence[int], kind: str) -> tuple[Tensor, Tensor]:
    """Largest value and the exponentials relative to it."""
    top = b.reduce("max", x, dims, hint="row_max")
    shifted = b.arith(fn.SUB, x, top, dtype=kind, hint="~shifted")
    return top, shifted


@rule("softmax.int", "_softmax.default")
def softmax(b: Builder, self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    kind = _kind(self)
    _, shifted = _exponentials(b, b.to(self, kind), (dim,), kind)
    numerator = b.call(fn.EXP, shifted, dtype=kind, hint="numerator")
    denominator = b.reduce("sum", numerator, (dim,), hint="denominator")
    return b.call(fn.DIV, numerator, denominator, dtype=kind, hint="~softmax")


@rule("log_softmax.int", "_log_softmax.default")
def log_softmax(b: Builder, self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    kind = _kind(self)
    _, shifted = _exponentials(b, b.to(self, kind), (dim,), kind)
    denominator = b.reduce("sum", b.call(fn.EXP, shifted, dtype=kind), (dim,), hint="denominator")
    return b.call(fn.SUB, shifted, b.call(fn.LOG, denominator, dtype=kind), dtype=kind)


@rule("logsumexp.default")
def logsumexp(b: Builder, self: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    kind = _kind(self)
    dims = _dims(dim)
    result = _log_sum_exp(b, b.to(self, kind), dims, kind)
    return result if keepdim else b.without(result, self.positions(dims))


def _log_sum_exp(b: Builder, x: Tensor, dims: Sequence[int], kind: str) -> Tensor:
    top, shifted = _exponentials(b, x, dims, kind)
    total = b.reduce("sum", b.call(fn.EXP, shifted, dtype=kind), dims, hint="denominator")
    return b.call(fn.ADD, top, b.call(fn.LOG, total, dtype=kind), dtype=kind, hint="~log_sum_exp")


def _affine(b: Builder, x: Tensor, weight: Tensor | None, bias: Tensor | None, kind: str) -> Tensor:
    if weight is not None:
        x = b.arith(fn.MUL, x, weight, dtype=kind)
    if bias is not None:
        x = b.arith(fn.ADD, x, bias, dtype=kind)
    return x


def _normalise(b: Builder, x: Tensor, dims: Sequence[int], eps: Number, kind: str) -> Tensor:
    centred, squares = _moments(b, x, dims, kind)
    spread = b.arith(fn.DIV, squares, b.count(x, dims), dtype=kind, hint="variance")
    rstd = b.arith(fn.RSQRT, b.arith(fn.ADD, spread, eps, dtype=kind), dtype=kind, hint="rstd")
    return b.arith(fn.MUL, centred, rstd, dtype=kind, hint="~normalised")


def _trailing(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


@rule("layer_norm.default")
def layer_norm(
    b: Builder,
    input: Tensor,
    normalized_shape: Sequence[Any],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: Number = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    kind = _kind(input)
    normalised = _normalise(b, input, _trailing(normalized_shape), eps, kind)
    return _affine(b, normalised, weight, bias, kind)


@rule("native_layer_norm.default")
def native_layer_norm(b: Builder, *args: Any) -> tuple[Tensor, None, None]:
    return layer_norm(b, *args), None, None


_EPSILON = {"float32": 1.1920928955078125e-07, "float64": 2.220446049250313e-16}


@rule("rms_norm.default")
def rms_norm(
    b: Builder,
    input: Tensor,
    normalized_shape: Sequence[Any],
    weight: Tensor | None = None,
    eps: Number | None = None,
) -> Tensor:
    kind = _kind(input)
    dims = _trailing(normalized_shape)
    square = b.arith(fn.MUL, input, input, dtype=kind)
    mean_square = mean(b, square, dims, hint="mean_square")
    if eps is None:
        eps = _EPSILON[kind]
    rstd = b.arith(fn.RSQRT, b.arith(fn.ADD, mean_square, eps, dtype=kind), dtype=kind, hint="rstd")
    return _affine(b, b.arith(fn.MUL, input, rstd, dtype=kind), weight, None, kind)


@rule("group_norm.default")
def group_norm(
    b: Builder,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: Number = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    channels = input.shape[1]
    require(len(input.dims) > 2 and channels % num_groups == 0, "group norm of that shape")
    group = Axis(num_groups, literal=True)
    within = Axis(channels // num_groups)
    parts = tuple((axis,) if axis.size > 1 else () for axis in (group, within))
    unify(input.dims[1], parts[0] + parts[1])
    grouped = Tensor(input.value, (input.dims[0], *parts, *input.dims[2:]))
    kind = _kind(input)
    dims = tuple(range(2, len(grouped.dims)))
    normalised = _normalise(b, grouped, dims, eps, kind)
    spatial = ((),) * (len(input.dims) - 2)
    weight, bias = (
        None if x is None else Tensor(x.value, (x.dims[0], *spatial)) for x in (weight, bias)
    )
    return _affine(b, Tensor(normalised.value, input.dims), weight, bias, kind)


@rule("instance_norm.default")
def instance_norm(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: Number,
    eps: Number,
    cudnn_enabled: bool,
) -> Tensor:
    require(use_input_stats and running_mean is None, "instance norm with running statistics")
    kind = _kind(input)
    normalised = _normalise(b, input, tuple(range(2, len(input.dims))), eps, kind)
    spatial = ((),) * (len(input.dims) - 2)
    weight, bias = (
        None if x is None else Tensor(x.value, (x.dims[0], *spatial)) for x in (weight, bias)
    )
    return _affine(b, normalised, weight, bias, kind)


def _reduced_loss(b: Builder, loss: Tensor, reduction: int) -> Tensor:
    """ATen's reduction argument: 0 none, 1 mean, 2 sum."""
    if reduction == 0:
        return loss
    if reduction == 1:
        return mean(b, loss, (), keepdim=False)
    return b.reduce("sum", loss, (), keepdim=False, hint="total")


@rule("mse_loss.default")
def mse_loss(b: Builder, self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    gap = b.arith(fn.SUB, self, target, hint="~error")
    return _reduced_loss(b, b.arith(fn.MUL, gap, gap), reduction)


@rule("l1_loss.default")
def l1_loss(b: Builder, self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return _reduced_loss(b, b.call(fn.ABS, b.arith(fn.SUB, self, target)), reduction)


@rule("smooth_l1_loss.default")
def smooth_l1_loss(
    b: Builder, self: Tensor, target: Tensor, reduction: int = 1, beta: Number = 1.0
) -> Tensor:
    require(beta > 0, "smooth L1 loss without a quadratic part")
    gap = b.call(fn.ABS, b.arith(fn.SUB, self, target), hint="~error")
    square: Tensor = b.arith(fn.MUL, b.arith(fn.MUL, 0.5, gap), gap)
    if beta != 1:
        square = b.arith(fn.DIV, square, beta)
    linear = b.arith(fn.SUB, gap, 0.5 * beta)
    return _reduced_loss(
        b, b.call(fn.WHERE, b.compare(fn.LT, gap, beta), square, linear), reduction
    )


@rule("huber_loss.default")
def huber_loss(
    b: Builder, self: Tensor, target: Tensor, reduction: int = 1, delta: Number = 1.0
) -> Tensor:
    gap = b.call(fn.ABS, b.arith(fn.SUB, self, target), hint="~error")
    square = b.arith(fn.MUL, b.arith(fn.MUL, 0.5, gap), gap)
    linear = b.arith(fn.MUL, delta, b.arith(fn.SUB, gap, 0.5 * delta))
    loss = b.call(fn.WHERE, b.compare(fn.LE, gap, delta), square, linear)
    return _reduced_loss(b, loss, reduction)


@rule("kl_div.default")
def kl_div(
    b: Builder, self: Tensor, target: Tensor, reduction: int = 1, log_target: bool = False
) -> Tensor:
    if log_target:
        loss = b.arith(fn.MUL, b.arith(fn.EXP, target), b.arith(fn.SUB, target, self))
    else:
        gain = b.arith(fn.MUL, target, b.arith(fn.SUB, b.arith(fn.LOG, target), self))
        loss = b.call(fn.WHERE, b.compare(fn.GT, target, 0.0), gain, 0.0)
    return _reduced_loss(b, loss, reduction)


@rule("glu.default")
def glu(b: Builder, self: Tensor, dim: int = -1) -> Tensor:
    require(False, "glu reads two halves of one tensor")
    return self


@rule("cosine_similarity.default")
def cosine_similarity(
    b: Builder, x1: Tensor, x2: Tensor, dim: int = 1, eps: Number = 1e-8
) -> Tensor:
    dot = b.reduce("sum", b.arith(fn.MUL, x1, x2), (dim,), False, "dot")
    norms = []
    for x, hint in ((x1, "norm_1"), (x2, "norm_2")):
        square = b.reduce("sum", b.arith(fn.MUL, x, x), (dim,), False)
        norms.append(pointwise.maximum_of(b, b.arith(fn.SQRT, square, hint=hint), eps))
    return b.arith(fn.DIV, dot, b.arith(fn.MUL, norms[0], norms[1]))


@rule("cross_entropy_loss.default")
def cross_entropy_loss(
    b: Builder,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    require(weight is None and label_smoothing == 0, "class weights or label smoothing")
    require(not is_float(target.dtype), "class probabilities as targets")
    kind = _kind(self)
    classes = 1 if len(self.dims) > 1 else 0
    log_sum = _log_sum_exp(b, self, (classes,), kind)
    log_sum = b.without(log_sum, [classes])
    used = b.call(fn.NE, target, ignore_index, dtype="bool", hint="counted")
    picked = b.gather(self, classes, target, used, "target_logit")
    picked = b.to(picked, kind)
    loss = b.call(
        fn.WHERE, used, b.arith(fn.SUB, log_sum, picked, dtype=kind), 0.0, dtype=kind, hint="loss"
    )
    if reduction == 0:
        return loss
    total = b.reduce("sum", loss, (), False, "total")
    if reduction == 2:
        return total
    count = b.reduce("sum", b.to(used, "int32"), (), False, "count")
    return b.arith(fn.DIV, total, count, dtype=kind)

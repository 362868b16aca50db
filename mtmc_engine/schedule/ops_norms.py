"""Rules of normalisations."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.ops_reductions import float_kind, mean, moments
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Axis, unify
from mtmc_engine.schedule.templates.tensors import Builder, Number, Tensor, promote


def _affine(b: Builder, x: Tensor, weight: Tensor | None, bias: Tensor | None, kind: str) -> Tensor:
    if weight is not None:
        x = b.arith(fn.MUL, x, weight, dtype=kind)
    if bias is not None:
        x = b.arith(fn.ADD, x, bias, dtype=kind)
    return x


def _normalise(b: Builder, x: Tensor, dims: Sequence[int], eps: Number, kind: str) -> Tensor:
    centred, squares = moments(b, x, dims, kind)
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
    kind = float_kind(input)
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
    kind = float_kind(input)
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
    require(channels % num_groups == 0, "group norm of that shape")
    group = Axis(num_groups, literal=True)
    within = Axis(channels // num_groups)
    parts = tuple((axis,) if axis.size > 1 else () for axis in (group, within))
    unify(input.dims[1], parts[0] + parts[1])
    grouped = Tensor(input.value, (input.dims[0], *parts, *input.dims[2:]))
    kind = float_kind(input)
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
    kind = float_kind(input)
    normalised = _normalise(b, input, tuple(range(2, len(input.dims))), eps, kind)
    spatial = ((),) * (len(input.dims) - 2)
    weight, bias = (
        None if x is None else Tensor(x.value, (x.dims[0], *spatial)) for x in (weight, bias)
    )
    return _affine(b, normalised, weight, bias, kind)


def _per_channel(x: Tensor, rank: int) -> Tensor:
    """A tensor over channels as one that broadcasts over [N, C, …]."""
    return Tensor(x.value, (x.dims[0], *((),) * (rank - 2)))


@rule("_native_batch_norm_legit_functional.default")
def batch_norm_training(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: Number,
    eps: Number,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Statistics of the batch; the running ones move towards them by `momentum`."""
    require(training, "a batch norm in inference that updates buffers")
    rank, kind = len(input.dims), float_kind(input)
    dims = (0, *range(2, rank))
    centred, squares = moments(b, input, dims, kind)
    average, count = mean(b, input, dims), b.count(input, dims)
    spread = b.arith(fn.DIV, squares, count, dtype=kind, hint="variance")
    rstd = b.arith(fn.RSQRT, b.arith(fn.ADD, spread, eps, dtype=kind), dtype=kind, hint="rstd")
    result = b.arith(fn.MUL, centred, rstd, dtype=kind, hint="~normalised")
    weight, bias = (None if x is None else _per_channel(x, rank) for x in (weight, bias))
    less = b.call(fn.SUB, count, 1, dtype="int32") if isinstance(count, Tensor) else 0
    unbiased = b.arith(fn.DIV, squares, less, dtype=kind)
    return (
        _affine(b, result, weight, bias, kind),
        b.without(average, dims),
        b.without(rstd, dims),
        _moved(b, running_mean, b.without(average, dims), momentum, "new_mean"),
        _moved(b, running_var, b.without(unbiased, dims), momentum, "new_var"),
    )


def _moved(b: Builder, running: Tensor, now: Tensor, momentum: Number, hint: str) -> Tensor:
    kept = b.arith(fn.MUL, running, 1.0 - momentum, dtype=running.dtype)
    return b.arith(
        fn.ADD, kept, b.arith(fn.MUL, now, momentum), dtype=running.dtype, hint=f"~{hint}"
    )


@rule("_native_batch_norm_legit_no_training.default")
def batch_norm(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: Number,
    eps: Number,
) -> tuple[Tensor | None, ...]:
    def per_channel(x: Tensor) -> Tensor:
        return _per_channel(x, len(input.dims))

    kind = promote(input.dtype, running_var.dtype)
    rstd = b.arith(
        fn.RSQRT,
        b.arith(fn.ADD, per_channel(running_var), eps, dtype=kind),
        dtype=kind,
        hint="rstd",
    )
    centred = b.arith(fn.SUB, input, per_channel(running_mean), dtype=kind)
    result = b.arith(fn.MUL, centred, rstd, dtype=kind)
    if weight is not None:
        result = b.arith(fn.MUL, result, per_channel(weight), dtype=kind)
    if bias is not None:
        result = b.arith(fn.ADD, result, per_channel(bias), dtype=kind)
    return result, None, None

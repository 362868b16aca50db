"""Rules of losses and similarities."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.ops_reductions import float_kind, log_sum_exp, mean
from mtmc_engine.schedule.ops_select import maximum_of
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.tensors import Builder, Number, Tensor, is_float


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


@rule("cosine_similarity.default")
def cosine_similarity(
    b: Builder, x1: Tensor, x2: Tensor, dim: int = 1, eps: Number = 1e-8
) -> Tensor:
    dot = b.reduce("sum", b.arith(fn.MUL, x1, x2), (dim,), False, "dot")
    norms = []
    for x, hint in ((x1, "norm_1"), (x2, "norm_2")):
        square = b.reduce("sum", b.arith(fn.MUL, x, x), (dim,), False)
        norms.append(maximum_of(b, b.arith(fn.SQRT, square, hint=hint), eps))
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
    kind = float_kind(self)
    classes = 1 if len(self.dims) > 1 else 0
    log_sum = log_sum_exp(b, self, (classes,), kind)
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

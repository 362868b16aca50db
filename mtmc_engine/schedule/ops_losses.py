"""Rules of losses and similarities."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

from typing import Any

from mtmc_engine.schedule.ops import RULES, require, rule
from mtmc_engine.schedule.ops_reductions import float_kind, log_sum_exp, mean
from mtmc_engine.schedule.ops_select import maximum_of
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.indexing import gather
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


@rule("binary_cross_entropy.default")
def binary_cross_entropy(
    b: Builder, self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """torch holds the logarithms at -100."""
    inverse = b.arith(fn.SUB, 1.0, self)
    yes = maximum_of(b, b.arith(fn.LOG, self), -100.0)
    no = maximum_of(b, b.arith(fn.LOG, inverse), -100.0)
    gap = b.arith(fn.MUL, b.arith(fn.SUB, target, 1.0), no)
    loss = b.arith(fn.SUB, gap, b.arith(fn.MUL, target, yes))
    return _reduced_loss(b, loss if weight is None else b.arith(fn.MUL, loss, weight), reduction)


@rule("binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    b: Builder,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    require(pos_weight is None, "weights of positive classes")
    log_sigmoid = RULES["aten.log_sigmoid.default"](b, self)
    loss = b.arith(fn.SUB, b.arith(fn.MUL, b.arith(fn.SUB, 1.0, target), self), log_sigmoid)
    return _reduced_loss(b, loss if weight is None else b.arith(fn.MUL, loss, weight), reduction)


@rule("soft_margin_loss.default")
def soft_margin_loss(b: Builder, self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    margin = b.arith(fn.MUL, self, target)
    loss = b.arith(fn.NEG, RULES["aten.log_sigmoid.default"](b, margin))
    return _reduced_loss(b, loss, reduction)


@rule("margin_ranking_loss.default")
def margin_ranking_loss(
    b: Builder,
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: Number = 0.0,
    reduction: int = 1,
) -> Tensor:
    gain = b.arith(fn.MUL, target, b.arith(fn.SUB, input1, input2))
    return _reduced_loss(b, maximum_of(b, b.arith(fn.SUB, margin, gain), 0.0), reduction)


@rule("hinge_embedding_loss.default")
def hinge_embedding_loss(
    b: Builder, self: Tensor, target: Tensor, margin: Number = 1.0, reduction: int = 1
) -> Tensor:
    far = maximum_of(b, b.arith(fn.SUB, margin, self), 0.0)
    near = b.call(fn.WHERE, b.compare(fn.NE, target, -1), self, 0.0)
    apart = b.call(fn.WHERE, b.compare(fn.NE, target, 1), far, 0.0)
    return _reduced_loss(b, b.arith(fn.ADD, near, apart), reduction)


def _distance(b: Builder, x: Tensor, y: Tensor, eps: Number, hint: str) -> Tensor:
    gap = b.arith(fn.ADD, b.arith(fn.SUB, x, y), eps)
    return b.arith(fn.SQRT, b.reduce("sum", b.arith(fn.MUL, gap, gap), (-1,), False), hint=hint)


@rule("pairwise_distance.default")
def pairwise_distance(
    b: Builder, x1: Tensor, x2: Tensor, p: Number = 2, eps: Number = 1e-6, keepdim: bool = False
) -> Tensor:
    require(p == 2 and not keepdim, "a distance of that order")
    return _distance(b, x1, x2, eps, "distance")


@rule("triplet_margin_loss.default")
def triplet_margin_loss(
    b: Builder,
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: Number = 1.0,
    p: Number = 2,
    eps: Number = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    require(p == 2 and not swap, "a triplet loss of that form")
    near = _distance(b, anchor, positive, eps, "near")
    far = _distance(b, anchor, negative, eps, "far")
    gap = b.arith(fn.SUB, b.arith(fn.ADD, near, margin), far)
    loss = b.call(fn.WHERE, b.compare(fn.LT, gap, 0.0), 0.0, gap, hint="loss")
    return _reduced_loss(b, loss, reduction)


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
    require(weight is None or label_smoothing == 0, "class weights and label smoothing")
    kind = float_kind(self)
    classes = 1 if len(self.dims) > 1 else 0
    log_sum = b.without(log_sum_exp(b, self, (classes,), kind), [classes])
    if is_float(target.dtype):
        require(weight is None and label_smoothing == 0, "weighted class probabilities")
        return _soft_targets(b, self, target, classes, reduction)
    used = b.call(fn.NE, target, ignore_index, dtype="bool", hint="counted")
    picked = b.to(gather(b, self, classes, target, used, "target_logit"), kind)
    surprise = b.arith(fn.SUB, log_sum, picked, dtype=kind)
    if label_smoothing:
        average = b.without(mean(b, self, (classes,), hint="mean_logit"), [classes])
        smooth = b.arith(fn.SUB, log_sum, average, dtype=kind)
        surprise = b.arith(
            fn.ADD,
            b.arith(fn.MUL, surprise, 1.0 - label_smoothing, dtype=kind),
            b.arith(fn.MUL, smooth, label_smoothing, dtype=kind),
            dtype=kind,
        )
    return _likelihood(b, surprise, target, used, weight, reduction)


def _likelihood(
    b: Builder, loss: Tensor, target: Tensor, used: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
    """Losses of the counted elements, weighted by class; the mean is over their weights."""
    kind = float_kind(loss)
    share: Tensor | None = None
    if weight is not None:
        share = gather(b, weight, 0, target, used, "class_weight")
        loss = b.arith(fn.MUL, loss, share, dtype=kind)
    loss = b.call(fn.WHERE, used, loss, 0.0, dtype=kind, hint="loss")
    if reduction == 0:
        return loss
    total = b.reduce("sum", loss, (), False, "total")
    if reduction == 2:
        return total
    counted = b.to(used, "int32") if share is None else share
    return b.arith(fn.DIV, total, b.reduce("sum", counted, (), False, "count"), dtype=kind)


def _soft_targets(b: Builder, x: Tensor, target: Tensor, classes: int, reduction: int) -> Tensor:
    """Cross entropy with a distribution over the classes as target."""
    kind = float_kind(x)
    log_sum = log_sum_exp(b, x, (classes,), kind)
    each = b.arith(fn.MUL, target, b.arith(fn.SUB, log_sum, x, dtype=kind), dtype=kind)
    loss = b.reduce("sum", each, (classes,), False, "loss")
    return _reduced_loss(b, loss, reduction)


@rule("nll_loss.default", "nll_loss_nd.default", "nll_loss2d.default")
def nll_loss(
    b: Builder,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Tensor:
    classes = 1 if len(self.dims) > 1 else 0
    used = b.call(fn.NE, target, ignore_index, dtype="bool", hint="counted")
    picked = gather(b, self, classes, target, used, "log_likelihood")
    return _likelihood(b, b.arith(fn.NEG, picked), target, used, weight, reduction)


@rule("nll_loss_forward.default")
def nll_loss_forward(b: Builder, *args: Any) -> tuple[Tensor, None]:
    return nll_loss(b, *args), None

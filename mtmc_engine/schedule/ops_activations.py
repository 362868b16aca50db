"""Rules of activation functions."""

from __future__ import annotations

from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.ops_arithmetic import helped, scaled
from mtmc_engine.schedule.ops_select import clamp, maximum_of, minimum_of
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.tensors import (
    Builder,
    Number,
    Operand,
    Tensor,
    is_float,
)


@rule("relu.default")
def relu(b: Builder, self: Tensor) -> Tensor:
    return maximum_of(b, self, 0 if not is_float(b.result) else 0.0)


@rule("relu6.default")
def relu6(b: Builder, self: Tensor) -> Tensor:
    return clamp(b, self, 0.0, 6.0)


@rule("threshold.default")
def threshold(b: Builder, self: Tensor, threshold: Number, value: Number) -> Tensor:
    return b.call(fn.WHERE, b.compare(fn.LE, self, threshold), value, self)


@rule("leaky_relu.default")
def leaky_relu(b: Builder, self: Tensor, negative_slope: Number = 0.01) -> Tensor:
    return b.call(
        fn.WHERE, b.compare(fn.GT, self, 0.0), self, b.arith(fn.MUL, negative_slope, self)
    )


@rule("prelu.default", "_prelu_kernel.default")
def prelu(b: Builder, self: Tensor, weight: Tensor) -> Tensor:
    if weight.dims and weight.dims[-1] and len(weight.dims) == 1 and len(self.dims) > 2:
        weight = Tensor(weight.value, (weight.dims[0], *((),) * (len(self.dims) - 2)))
    return b.call(fn.WHERE, b.compare(fn.GT, self, 0.0), self, b.arith(fn.MUL, weight, self))


@rule("silu.default")
def silu(b: Builder, self: Tensor) -> Tensor:
    return b.arith(fn.MUL, self, b.arith(fn.SIGMOID, self), hint="~silu")


@rule("gelu.default")
def gelu(b: Builder, self: Tensor, approximate: str = "none") -> Tensor:
    half = b.arith(fn.MUL, 0.5, self)
    if approximate == "tanh":
        cube = b.arith(fn.MUL, b.arith(fn.MUL, self, self), self)
        argument = b.arith(
            fn.MUL, 0.7978845608028654, b.arith(fn.ADD, self, b.arith(fn.MUL, 0.044715, cube))
        )
        bend: Tensor = helped(b, fn.TANH, argument)
    else:
        bend = b.arith(fn.ERF, b.arith(fn.MUL, self, 0.7071067811865476))
    return b.arith(fn.MUL, half, b.arith(fn.ADD, 1.0, bend), hint="~gelu")


@rule("elu.default")
def elu(
    b: Builder, self: Tensor, alpha: Number = 1.0, scale: Number = 1.0, input_scale: Number = 1.0
) -> Tensor:
    require(input_scale == 1, "elu with an input scale")
    negative = scaled(b, helped(b, fn.EXPM1, self), alpha * scale)
    return b.call(fn.WHERE, b.compare(fn.GT, self, 0.0), scaled(b, self, scale), negative)


@rule("celu.default")
def celu(b: Builder, self: Tensor, alpha: Number = 1.0) -> Tensor:
    argument = self if alpha == 1 else b.arith(fn.DIV, self, alpha)
    negative = scaled(b, helped(b, fn.EXPM1, argument), alpha)
    return b.call(fn.WHERE, b.compare(fn.GT, self, 0.0), self, negative)


@rule("selu.default")
def selu(b: Builder, self: Tensor) -> Tensor:
    return elu(b, self, 1.6732632423543772, 1.0507009873554805)


@rule("softplus.default")
def softplus(b: Builder, self: Tensor, beta: Number = 1, threshold: Number = 20) -> Tensor:
    x = scaled(b, self, beta)
    assert isinstance(x, Tensor)
    soft: Operand = helped(b, fn.LOG1P, b.arith(fn.EXP, x))
    if beta != 1:
        soft = b.arith(fn.DIV, soft, beta)
    return b.call(fn.WHERE, b.compare(fn.GT, x, threshold), self, soft)


@rule("mish.default")
def mish(b: Builder, self: Tensor) -> Tensor:
    return b.arith(fn.MUL, self, helped(b, fn.TANH, softplus(b, self)))


@rule("log_sigmoid.default")
def log_sigmoid(b: Builder, self: Tensor) -> Tensor:
    decay = b.arith(fn.EXP, b.arith(fn.NEG, b.call(fn.ABS, self)))
    return b.arith(fn.SUB, minimum_of(b, self, 0.0), helped(b, fn.LOG1P, decay))


@rule("hardsigmoid.default")
def hardsigmoid(b: Builder, self: Tensor) -> Tensor:
    return b.arith(fn.DIV, clamp(b, b.arith(fn.ADD, self, 3.0), 0.0, 6.0), 6.0)


@rule("hardswish.default")
def hardswish(b: Builder, self: Tensor) -> Tensor:
    gate = clamp(b, b.arith(fn.ADD, self, 3.0), 0.0, 6.0)
    return b.arith(fn.DIV, b.arith(fn.MUL, self, gate), 6.0)


@rule("logit.default")
def logit(b: Builder, self: Tensor, eps: Number | None = None) -> Tensor:
    x = self if eps is None else clamp(b, self, eps, 1.0 - eps)
    return b.arith(fn.LOG, b.arith(fn.DIV, x, b.arith(fn.SUB, 1.0, x)))

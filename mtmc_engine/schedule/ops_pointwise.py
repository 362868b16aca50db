"""Rules of pointwise operators."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

import math
from typing import Any

from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.functions import Function
from mtmc_engine.schedule.templates.tensors import (
    Builder,
    Number,
    Operand,
    Tensor,
    is_float,
    kernel_dtype,
    promote,
)


def _scaled(b: Builder, x: Operand, alpha: Number) -> Operand:
    if alpha == 1:
        return x
    return x * alpha if not isinstance(x, Tensor) else b.arith(fn.MUL, x, alpha)


@rule("add.Tensor", "add.Scalar")
def add(b: Builder, self: Tensor, other: Operand, alpha: Number = 1) -> Tensor:
    if b.result == "bool":
        return b.call(fn.BIT_OR, self, other)
    return b.arith(fn.ADD, self, _scaled(b, other, alpha), hint="~total")


@rule("sub.Tensor", "sub.Scalar")
def sub(b: Builder, self: Tensor, other: Operand, alpha: Number = 1) -> Tensor:
    return b.arith(fn.SUB, self, _scaled(b, other, alpha), hint="~difference")


@rule("rsub.Tensor", "rsub.Scalar")
def rsub(b: Builder, self: Tensor, other: Operand, alpha: Number = 1) -> Tensor:
    return b.arith(fn.SUB, other, _scaled(b, self, alpha), hint="~difference")


@rule("mul.Tensor", "mul.Scalar")
def mul(b: Builder, self: Tensor, other: Operand) -> Tensor:
    if b.result == "bool":
        return b.call(fn.BIT_AND, self, other)
    return b.arith(fn.MUL, self, other, hint="~product")


@rule("div.Tensor", "div.Scalar")
def div(b: Builder, self: Tensor, other: Operand) -> Tensor:
    return b.arith(fn.DIV, self, other, hint="~quotient")


@rule("neg.default")
def neg(b: Builder, self: Tensor) -> Tensor:
    return b.arith(fn.NEG, self)


@rule("addcmul.default")
def addcmul(
    b: Builder, self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1
) -> Tensor:
    product = _scaled(b, b.arith(fn.MUL, tensor1, tensor2), value)
    return b.arith(fn.ADD, self, product)


@rule("addcdiv.default")
def addcdiv(
    b: Builder, self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1
) -> Tensor:
    quotient = _scaled(b, b.arith(fn.DIV, tensor1, tensor2), value)
    return b.arith(fn.ADD, self, quotient)


@rule("lerp.Scalar", "lerp.Tensor")
def lerp(b: Builder, self: Tensor, end: Tensor, weight: Operand) -> Tensor:
    step = b.arith(fn.MUL, weight, b.arith(fn.SUB, end, self))
    return b.arith(fn.ADD, self, step)


def _float_rule(function: Function, hint: str = "") -> Any:
    def expand(b: Builder, self: Tensor) -> Tensor:
        return b.arith(function, self, hint=hint)

    return expand


for _name, _function in {
    "exp": fn.EXP,
    "exp2": fn.EXP2,
    "log": fn.LOG,
    "log2": fn.LOG2,
    "sqrt": fn.SQRT,
    "rsqrt": fn.RSQRT,
    "sin": fn.SIN,
    "cos": fn.COS,
    "erf": fn.ERF,
    "sigmoid": fn.SIGMOID,
}.items():
    rule(f"{_name}.default")(_float_rule(_function))


@rule("tanh.default")
def tanh(b: Builder, self: Tensor) -> Tensor:
    return helped(b, fn.TANH, self)


@rule("log1p.default")
def log1p(b: Builder, self: Tensor) -> Tensor:
    return helped(b, fn.LOG1P, self)


@rule("expm1.default")
def expm1(b: Builder, self: Tensor) -> Tensor:
    return helped(b, fn.EXPM1, self)


def helped(b: Builder, function: Function, x: Operand) -> Tensor:
    """A function whose helper is accurate in float32 only."""
    require(b.result != "float64", f"{function.helper} has no float64 form")
    return b.arith(function, x)


@rule("abs.default")
def absolute(b: Builder, self: Tensor) -> Tensor:
    return self if self.dtype in ("bool", "uint8") else b.call(fn.ABS, self)


@rule("floor.default")
def floor(b: Builder, self: Tensor) -> Tensor:
    return b.call(fn.FLOOR, self) if is_float(b.result) else self


@rule("ceil.default")
def ceil(b: Builder, self: Tensor) -> Tensor:
    return b.call(fn.CEIL, self) if is_float(b.result) else self


@rule("sign.default", "sgn.default")
def sign(b: Builder, self: Tensor) -> Tensor:
    positive = b.compare(fn.GT, self, 0)
    negative = b.compare(fn.LT, self, 0)
    kind = b.result
    return b.call(fn.SUB, b.to(positive, kind), b.to(negative, kind))


@rule("reciprocal.default")
def reciprocal(b: Builder, self: Tensor) -> Tensor:
    return b.arith(fn.DIV, 1.0, self)


@rule("square.default")
def square(b: Builder, self: Tensor) -> Tensor:
    return power(b, self, 2)


@rule("pow.Tensor_Scalar")
def pow_scalar(b: Builder, self: Tensor, exponent: Number) -> Tensor:
    return power(b, self, exponent)


def power(b: Builder, x: Tensor, exponent: Number) -> Tensor:
    """Small powers as products and roots. Raises Unsupported for others."""
    kind = b.result
    if exponent in (0.5, -0.5) and is_float(kind):
        return b.arith(fn.SQRT if exponent > 0 else fn.RSQRT, x)
    require(float(exponent).is_integer() and abs(exponent) <= 8, "a power that is no product")
    if exponent < 0:
        require(is_float(kind), "a negative power of an integer")
        return b.arith(fn.DIV, 1.0, power(b, x, -exponent))
    require(exponent > 0, "a power of zero")
    base = b.converted(x, kind)
    assert isinstance(base, Tensor)
    result: Tensor | None = None
    square_, left = base, int(exponent)
    while left:
        if left & 1:
            result = square_ if result is None else b.arith(fn.MUL, result, square_)
        left >>= 1
        if left:
            square_ = b.arith(fn.MUL, square_, square_)
    assert result is not None
    return result


def maximum_of(b: Builder, x: Operand, y: Operand) -> Tensor:
    """The larger one; NaN in `x` stays."""
    return b.call(fn.WHERE, b.compare(fn.LT, x, y), y, x)


def minimum_of(b: Builder, x: Operand, y: Operand) -> Tensor:
    """The smaller one; NaN in `x` stays."""
    return b.call(fn.WHERE, b.compare(fn.GT, x, y), y, x)


@rule("maximum.default", "max.other")
def maximum(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    return b.arith(fn.MAXIMUM_NAN if is_float(b.result) else fn.MAXIMUM, self, other)


@rule("minimum.default", "min.other")
def minimum(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    return b.arith(fn.MINIMUM_NAN if is_float(b.result) else fn.MINIMUM, self, other)


@rule("clamp.default", "clamp.Tensor", "hardtanh.default", "clip.default")
def clamp(
    b: Builder,
    self: Tensor,
    min: Operand | None = None,
    max: Operand | None = None,
    min_val: Number | None = None,
    max_val: Number | None = None,
) -> Tensor:
    low = min if min is not None else min_val
    high = max if max is not None else max_val
    x = b.converted(self, b.result)
    if low is not None:
        x = maximum_of(b, x, low)
    if high is not None:
        x = minimum_of(b, x, high)
    assert isinstance(x, Tensor)
    return x


@rule("clamp_min.default", "clamp_min.Tensor")
def clamp_min(b: Builder, self: Tensor, min: Operand) -> Tensor:
    return clamp(b, self, min=min)


@rule("clamp_max.default", "clamp_max.Tensor")
def clamp_max(b: Builder, self: Tensor, max: Operand) -> Tensor:
    return clamp(b, self, max=max)


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
    negative = _scaled(b, helped(b, fn.EXPM1, self), alpha * scale)
    return b.call(fn.WHERE, b.compare(fn.GT, self, 0.0), _scaled(b, self, scale), negative)


@rule("celu.default")
def celu(b: Builder, self: Tensor, alpha: Number = 1.0) -> Tensor:
    argument = self if alpha == 1 else b.arith(fn.DIV, self, alpha)
    negative = _scaled(b, helped(b, fn.EXPM1, argument), alpha)
    return b.call(fn.WHERE, b.compare(fn.GT, self, 0.0), self, negative)


@rule("selu.default")
def selu(b: Builder, self: Tensor) -> Tensor:
    return elu(b, self, 1.6732632423543772, 1.0507009873554805)


@rule("softplus.default")
def softplus(b: Builder, self: Tensor, beta: Number = 1, threshold: Number = 20) -> Tensor:
    x = _scaled(b, self, beta)
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


def _comparison(function: Function) -> Any:
    def expand(b: Builder, self: Tensor, other: Operand) -> Tensor:
        return b.compare(function, self, other)

    return expand


for _name, _function in fn.COMPARISONS.items():
    rule(f"{_name}.Tensor", f"{_name}.Scalar")(_comparison(_function))


def _boolean(b: Builder, x: Operand) -> Operand:
    return b.to(x, "bool") if isinstance(x, Tensor) else bool(x)


def _logical(function: Function) -> Any:
    def expand(b: Builder, self: Tensor, other: Operand) -> Tensor:
        return b.call(function, _boolean(b, self), _boolean(b, other), dtype="bool")

    return expand


for _name, _function in {"and": fn.BIT_AND, "or": fn.BIT_OR, "xor": fn.BIT_XOR}.items():
    rule(f"logical_{_name}.default")(_logical(_function))


def _bitwise(function: Function) -> Any:
    def expand(b: Builder, self: Tensor, other: Operand) -> Tensor:
        return b.call(function, self, other)

    return expand


for _name, _function in {"and": fn.BIT_AND, "or": fn.BIT_OR, "xor": fn.BIT_XOR}.items():
    rule(
        f"bitwise_{_name}.Tensor",
        f"bitwise_{_name}.Scalar",
        f"__{_name}__.Tensor",
        f"__{_name}__.Scalar",
    )(_bitwise(_function))


@rule("logical_not.default")
def logical_not(b: Builder, self: Tensor) -> Tensor:
    return b.call(fn.IS_FALSE, self, dtype="bool")


@rule("bitwise_not.default")
def bitwise_not(b: Builder, self: Tensor) -> Tensor:
    return b.call(fn.IS_FALSE if self.dtype == "bool" else fn.NOT, self)


@rule("isnan.default")
def isnan(b: Builder, self: Tensor) -> Tensor:
    require(is_float(self.dtype), "isnan of integers")
    return b.call(fn.NE, self, self, dtype="bool")


@rule("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(b: Builder, condition: Tensor, self: Operand, other: Operand) -> Tensor:
    kind = b.result
    return b.call(fn.WHERE, condition, b.converted(self, kind), b.converted(other, kind))


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(b: Builder, self: Tensor, mask: Tensor, value: Operand) -> Tensor:
    return b.call(fn.WHERE, mask, b.converted(value, b.result), self)


@rule("_to_copy.default", "to.dtype", "to.dtype_layout", "type_as.default")
def to_copy(b: Builder, self: Tensor, other: Any = None, dtype: str = "", **kwargs: Any) -> Tensor:
    """Device and layout requests are kept by the launcher's own allocation."""
    x = b.to(self, b.result)
    stored = b.spec.dtype
    if kernel_dtype(stored) != stored:
        return b.call(fn.round_to(stored, b.result), x)
    return x


@rule(
    "clone.default",
    "contiguous.default",
    "alias.default",
    "detach.default",
    "dropout.default",
    "lift_fresh_copy.default",
)
def clone(b: Builder, self: Tensor, p: float = 0.0, train: bool = False, **kwargs: Any) -> Tensor:
    require(not train or p == 0, "active dropout")
    return self


@rule("logaddexp.default")
def logaddexp(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    larger = b.arith(fn.MAXIMUM, self, other)
    gap = b.arith(fn.NEG, b.call(fn.ABS, b.arith(fn.SUB, self, other)))
    return b.arith(fn.ADD, larger, helped(b, fn.LOG1P, b.arith(fn.EXP, gap)))


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
        return Tensor(x.value, (x.dims[0], *((),) * (len(input.dims) - 2)))

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


def constant_log(base: float) -> float:
    return 1.0 / math.log(base)


@rule("log10.default")
def log10(b: Builder, self: Tensor) -> Tensor:
    return b.arith(fn.MUL, b.arith(fn.LOG, self), constant_log(10.0))

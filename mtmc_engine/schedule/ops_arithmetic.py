"""Rules of arithmetic and elementary functions."""

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
)


def scaled(b: Builder, x: Operand, alpha: Number) -> Operand:
    """x * alpha, without a product by one."""
    if alpha == 1:
        return x
    return x * alpha if not isinstance(x, Tensor) else b.arith(fn.MUL, x, alpha)


@rule("add.Tensor", "add.Scalar")
def add(b: Builder, self: Tensor, other: Operand, alpha: Number = 1) -> Tensor:
    if b.result == "bool":
        return b.call(fn.BIT_OR, self, other)
    return b.arith(fn.ADD, self, scaled(b, other, alpha), hint="~total")


@rule("sub.Tensor", "sub.Scalar")
def sub(b: Builder, self: Tensor, other: Operand, alpha: Number = 1) -> Tensor:
    return b.arith(fn.SUB, self, scaled(b, other, alpha), hint="~difference")


@rule("rsub.Tensor", "rsub.Scalar")
def rsub(b: Builder, self: Tensor, other: Operand, alpha: Number = 1) -> Tensor:
    return b.arith(fn.SUB, other, scaled(b, self, alpha), hint="~difference")


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
    product = scaled(b, b.arith(fn.MUL, tensor1, tensor2), value)
    return b.arith(fn.ADD, self, product)


@rule("addcdiv.default")
def addcdiv(
    b: Builder, self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1
) -> Tensor:
    quotient = scaled(b, b.arith(fn.DIV, tensor1, tensor2), value)
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


@rule("round.default")
def round_(b: Builder, self: Tensor) -> Tensor:
    return helped(b, fn.ROUND, self) if is_float(b.result) else self


@rule("trunc.default", "fix.default")
def trunc(b: Builder, self: Tensor) -> Tensor:
    if not is_float(b.result):
        return self
    return b.call(
        fn.WHERE, b.compare(fn.LT, self, 0.0), b.call(fn.CEIL, self), b.call(fn.FLOOR, self)
    )


@rule("tan.default")
def tan(b: Builder, self: Tensor) -> Tensor:
    return b.arith(fn.DIV, b.arith(fn.SIN, self), b.arith(fn.COS, self))


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
    if float(exponent) % 1 == 0.5 and 0 < exponent <= 8 and is_float(kind):
        return b.arith(fn.MUL, power(b, x, int(exponent)), b.arith(fn.SQRT, x))
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


@rule("log10.default")
def log10(b: Builder, self: Tensor) -> Tensor:
    return b.arith(fn.MUL, b.arith(fn.LOG, self), 1.0 / math.log(10.0))


@rule("logaddexp.default")
def logaddexp(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    larger = b.arith(fn.MAXIMUM, self, other)
    gap = b.arith(fn.NEG, b.call(fn.ABS, b.arith(fn.SUB, self, other)))
    return b.arith(fn.ADD, larger, helped(b, fn.LOG1P, b.arith(fn.EXP, gap)))

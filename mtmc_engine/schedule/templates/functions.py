"""Pointwise functions of one element: their Triton text and their value on plain numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


class Level(IntEnum):
    """Binding strength of Python expressions, weakest first."""

    ANY = 0
    COMPARE = 1
    OR = 2
    XOR = 3
    AND = 4
    SUM = 5
    PRODUCT = 6
    UNARY = 7
    ATOM = 8


@dataclass(frozen=True)
class Function:
    """A pointwise function.

    text:     Triton expression with {0}, {1}, … for the operands.
    level:    binding strength of the expression; `operands` what each operand needs at least.
    evaluate: the same on Python numbers; used to follow the value of masked lanes.
    helper:   name of the device function that the module must define, "" for none.
    """

    text: str
    level: Level
    operands: tuple[Level, ...]
    evaluate: Callable[..., Any]
    helper: str = ""


def _infix(symbol: str, level: Level, evaluate: Callable[..., Any]) -> Function:
    tighter = Level(level + 1)
    first = tighter if level == Level.COMPARE else level
    return Function(f"{{0}} {symbol} {{1}}", level, (first, tighter), evaluate)


def _call(name: str, evaluate: Callable[..., Any], count: int = 1, helper: str = "") -> Function:
    text = f"{name}({', '.join(f'{{{i}}}' for i in range(count))})"
    return Function(text, Level.ATOM, (Level.ANY,) * count, evaluate, helper)


ADD = _infix("+", Level.SUM, operator.add)
SUB = _infix("-", Level.SUM, operator.sub)
MUL = _infix("*", Level.PRODUCT, operator.mul)
DIV = _infix("/", Level.PRODUCT, operator.truediv)
MOD = _infix("%", Level.PRODUCT, operator.mod)
FLOOR_DIV = _infix("//", Level.PRODUCT, operator.floordiv)
NEG = Function("-{0}", Level.UNARY, (Level.UNARY,), operator.neg)

LT = _infix("<", Level.COMPARE, operator.lt)
LE = _infix("<=", Level.COMPARE, operator.le)
GT = _infix(">", Level.COMPARE, operator.gt)
GE = _infix(">=", Level.COMPARE, operator.ge)
EQ = _infix("==", Level.COMPARE, operator.eq)
NE = _infix("!=", Level.COMPARE, operator.ne)
COMPARISONS = {"lt": LT, "le": LE, "gt": GT, "ge": GE, "eq": EQ, "ne": NE}

BIT_AND = _infix("&", Level.AND, operator.and_)
BIT_OR = _infix("|", Level.OR, operator.or_)
BIT_XOR = _infix("^", Level.XOR, operator.xor)
NOT = Function("~{0}", Level.UNARY, (Level.UNARY,), operator.invert)
IS_FALSE = Function("{0} == 0", Level.COMPARE, (Level.OR,), lambda x: x == 0)
IS_TRUE = Function("{0} != 0", Level.COMPARE, (Level.OR,), lambda x: x != 0)

EXP = _call("tl.exp", math.exp)
EXP2 = _call("tl.exp2", lambda x: 2.0**x)
LOG = _call("tl.log", math.log)
LOG2 = _call("tl.log2", math.log2)
SQRT = _call("tl.sqrt", math.sqrt)
RSQRT = _call("tl.rsqrt", lambda x: 1.0 / math.sqrt(x))
ABS = _call("tl.abs", abs)
SIN = _call("tl.sin", math.sin)
COS = _call("tl.cos", math.cos)
ERF = _call("tl.erf", math.erf)
SIGMOID = _call("tl.sigmoid", lambda x: 1.0 / (1.0 + math.exp(-x)))
FLOOR = _call("tl.floor", math.floor)
CEIL = _call("tl.ceil", math.ceil)

MAXIMUM = _call("tl.maximum", max, 2)
MINIMUM = _call("tl.minimum", min, 2)
MAXIMUM_NAN = Function(
    "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    Level.ATOM,
    (Level.ANY, Level.ANY),
    max,
)
MINIMUM_NAN = Function(
    "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    Level.ATOM,
    (Level.ANY, Level.ANY),
    min,
)
WHERE = _call("tl.where", lambda c, a, b: a if c else b, 3)
TANH = _call("tanh", math.tanh, helper="tanh")
LOG1P = _call("log1p", math.log1p, helper="log1p")
ROUND = _call("round_half_even", round, helper="round_half_even")
EXPM1 = _call("expm1", math.expm1, helper="expm1")


def constant(value: float | int | bool) -> Function:
    """A number as a value of its own."""
    level = Level.ATOM if isinstance(value, bool) or value >= 0 else Level.UNARY
    return Function(repr(value), level, (), lambda: value)


def cast(dtype: str) -> Function:
    """Conversion to a kernel type such as "float32" or "int64"."""
    convert: Callable[[Any], Any] = float if dtype.startswith("float") else int
    if dtype == "bool":
        return IS_TRUE
    return Function(f"{{0}}.to(tl.{dtype})", Level.ATOM, (Level.ATOM,), convert)


def round_to(dtype: str, back: str) -> Function:
    """Rounds to a narrower storage type and returns to the kernel type `back`."""
    text = f"{{0}}.to(tl.{dtype}).to(tl.{back})"
    return Function(text, Level.ATOM, (Level.ATOM,), lambda x: x)


# What a launcher may compute from totals: torch has these under the same names.
FINISHING = (ADD, SUB, MUL, DIV, NEG, SQRT, RSQRT, EXP, LOG, ABS)

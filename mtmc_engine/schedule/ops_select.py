"""Rules of comparisons, selection, logic and conversion."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

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
)


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


@rule("isinf.default")
def isinf(b: Builder, self: Tensor) -> Tensor:
    require(is_float(self.dtype), "isinf of integers")
    return b.call(fn.EQ, b.call(fn.ABS, self, dtype=self.dtype), float("inf"), dtype="bool")


@rule("isfinite.default")
def isfinite(b: Builder, self: Tensor) -> Tensor:
    require(is_float(self.dtype), "isfinite of integers")
    return b.call(fn.LT, b.call(fn.ABS, self, dtype=self.dtype), float("inf"), dtype="bool")


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

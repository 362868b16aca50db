"""Text of pointwise expressions with no more parentheses than needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mtmc_engine.schedule.templates.functions import Function, Level
from mtmc_engine.schedule.templates.tensors import Number


@dataclass(frozen=True)
class Text:
    """An expression and how strongly it binds."""

    text: str
    level: Level = Level.ATOM

    def at(self, level: Level) -> str:
        """The expression as an operand that must bind at least as strongly as `level`."""
        return self.text if self.level >= level else f"({self.text})"


def number(value: Number) -> Text:
    """A Python number as source text."""
    if isinstance(value, float) and math.isnan(value):
        return Text('float("nan")')
    if isinstance(value, float) and math.isinf(value):
        sign = "-" if value < 0 else ""
        return Text(f'{sign}float("inf")', Level.UNARY if sign else Level.ATOM)
    return Text(
        repr(value), Level.UNARY if not isinstance(value, bool) and value < 0 else Level.ATOM
    )


def apply(function: Function, operands: Sequence[Text]) -> Text:
    """The function's expression."""
    parts = [operand.at(level) for operand, level in zip(operands, function.operands, strict=True)]
    return Text(function.text.format(*parts), function.level)


def horner(indices: Sequence[tuple[Text, str]]) -> Text:
    """Offset in a dense layout: (index, size) of each axis, outermost first."""
    if not indices:
        return Text("0")
    offset = indices[0][0]
    for index, size in indices[1:]:
        product = Text(f"{offset.at(Level.PRODUCT)} * {size}", Level.PRODUCT)
        offset = Text(f"{product.at(Level.SUM)} + {index.at(Level.PRODUCT)}", Level.SUM)
    return offset

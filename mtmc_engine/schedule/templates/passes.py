"""Which sweep over a long row computes what, and which statistics share one sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.tensors import Value
from mtmc_engine.schedule.templates.trace import Trace


@dataclass(frozen=True)
class Online:
    """The largest value of a row and the sum of exponentials relative to it, in one sweep.

    value: what both are about. top: the maximum. total: the sum.
    """

    value: Value
    top: Value
    total: Value

    @property
    def folds(self) -> tuple[Value, ...]:
        return (self.top, self.total)


@dataclass(frozen=True)
class Moments:
    """The mean of a row and the sum of squared distances from it, in one sweep.

    value: what both are about. plain: its sum. mean: the sum over the count. total: of squares.
    """

    value: Value
    plain: Value
    mean: Value
    total: Value

    @property
    def folds(self) -> tuple[Value, ...]:
        return (self.plain, self.total)


Pair = Online | Moments


def pairs_of(program: Trace) -> tuple[Pair, ...]:
    """Reductions that depend on one another and still need only one sweep."""
    found: list[Pair] = []
    for fold in program.reductions:
        pair = _online(fold) or _moments(program, fold)
        if pair is not None:
            found.append(pair)
    return tuple(found)


def _online(fold: Value) -> Online | None:
    if fold.fold != "sum" or fold.operands[0].function is not fn.EXP:
        return None
    shifted = fold.operands[0].operands[0]
    if shifted.function is not fn.SUB or len(shifted.operands) != 2:
        return None
    value, top = shifted.operands
    if top.kind == "reduce" and top.fold == "max" and top.operands[0] is value:
        return Online(value, top, fold)
    return None


def _moments(program: Trace, fold: Value) -> Moments | None:
    square = fold.operands[0]
    if fold.fold != "sum" or square.function is not fn.MUL or len(set(square.args)) != 1:
        return None
    centred = square.operands[0]
    if centred.function is not fn.SUB or len(centred.operands) != 2:
        return None
    value, mean = centred.operands
    if mean.function is not fn.DIV or len(mean.operands) != 2:
        return None
    plain, count = mean.operands
    sums = plain.kind == "reduce" and plain.fold == "sum" and plain.operands[0] is value
    readers = [other for other in program.values if plain in other.operands]
    if sums and count.kind == "count" and readers == [mean]:
        return Moments(value, plain, mean, fold)
    return None


def sweeps(program: Trace, pairs: tuple[Pair, ...]) -> Mapping[Value, int]:
    """The sweep in which each value can first be computed, from 0.

    A reduction is finished by its operand's sweep and known in the next one.
    """
    merged = {pair.total: pair.value for pair in pairs}
    at: dict[Value, int] = {}
    for value in program.values:
        if value.kind == "reduce":
            operand = merged.get(value, value.operands[0])
            at[value] = at[operand] + 1
        else:
            at[value] = max((at[operand] for operand in value.operands), default=0)
    return at

"""What masked lanes hold: which `other` each load needs, and where a tl.where is unavoidable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isnan

from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Dim
from mtmc_engine.schedule.templates.space import resolved
from mtmc_engine.schedule.templates.tensors import Fold, Number, Value, is_float

INF = float("inf")
_INTEGER_RANGES = {
    "uint8": (0, 255),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


@dataclass(frozen=True)
class Lanes:
    """others: what masked lanes of a load hold; guarded: what a tl.where puts into a value's."""

    others: Mapping[Value, Number]
    guarded: Mapping[Value, Number]


def identity(fold: Fold, dtype: str) -> Number:
    """The element that changes nothing under a fold."""
    if fold == "sum":
        return 0.0 if is_float(dtype) else 0
    if is_float(dtype):
        return -INF if fold == "max" else INF
    lowest, highest = _INTEGER_RANGES[dtype]
    return lowest if fold == "max" else highest


def masked_lanes(values: Sequence[Value], folds: Sequence[Value], reduced: Dim) -> Lanes:
    """The cheapest treatment of the lanes beyond the reduced block.

    values: of the kernel, operands first. folds: its reductions.
    """
    inside = set(reduced)
    wide = [value for value in values if inside & set(resolved(value.axes))]
    feeding = _feeding(folds)
    loads = [value for value in wide if value.kind == "load" and value in feeding]
    best: Lanes | None = None
    for choice in _choices(loads):
        guarded: dict[Value, Number] = {}
        for fold in folds:
            held = _held(wide, choice, guarded)
            _guard(fold, held, guarded, wide, choice)
        if best is None or len(guarded) < len(best.guarded):
            best = Lanes(choice, guarded)
        if not guarded:
            break
    return best or Lanes({}, {})


def _feeding(folds: Sequence[Value]) -> set[Value]:
    """Everything that the reductions are computed from."""
    found: set[Value] = set()
    waiting = list(folds)
    while waiting:
        value = waiting.pop()
        if value not in found:
            found.add(value)
            waiting.extend(value.operands)
    return found


def _choices(loads: Sequence[Value]) -> list[dict[Value, Number]]:
    options = [
        (0.0, -INF, INF) if is_float(load.dtype) else (0, *_extremes(load.dtype)) for load in loads
    ]
    if len(loads) <= 3:
        return [dict(zip(loads, choice, strict=True)) for choice in product(*options)]
    return [
        {load: o[at % len(o)] for load, o in zip(loads, options, strict=True)} for at in range(3)
    ]


def _extremes(dtype: str) -> tuple[Number, ...]:
    if dtype == "bool":
        return ()
    return identity("max", dtype), identity("min", dtype)


def _held(
    wide: Sequence[Value], others: Mapping[Value, Number], guarded: Mapping[Value, Number]
) -> dict[Value, Number]:
    """What masked lanes hold, for the values where that is known."""
    held: dict[Value, Number] = {}
    for value in wide:
        if value in others:
            held[value] = others[value]
        elif value.kind == "compute":
            result = _evaluate(value, held)
            if result is not None:
                held[value] = result
        if value in guarded:
            held[value] = guarded[value]
    return held


def _evaluate(value: Value, held: Mapping[Value, Number]) -> Number | None:
    args = [held.get(arg) if isinstance(arg, Value) else arg for arg in value.args]
    assert value.function is not None
    if value.function is fn.SUB and args[0] in (-INF, INF) and args[1] is None:
        subtrahend = value.args[1]
        if isinstance(subtrahend, Value) and subtrahend.kind == "reduce":
            # Where the row's extreme is infinite as well, its real lanes are NaN already.
            return args[0]
    if any(arg is None for arg in args):
        return None
    try:
        result: Number = value.function.evaluate(*args)
    except (ArithmeticError, ValueError):
        return None
    return None if isinstance(result, float) and isnan(result) else result


def _guard(
    fold: Value,
    held: Mapping[Value, Number],
    guarded: dict[Value, Number],
    wide: Sequence[Value],
    others: Mapping[Value, Number],
) -> None:
    """Adds the one guard that makes masked lanes vanish in `fold`, where it needs one."""
    operand = fold.operands[0]
    wanted = identity(fold.fold, operand.dtype)
    if operand not in wide or held.get(operand) == wanted:
        return
    for part in operand.operands:
        if (
            part.kind == "compute"
            and part in wide
            and part not in guarded
            and operand.args.count(part) == len(operand.args)
        ):
            trial = {**guarded, part: 0.0 if is_float(part.dtype) else 0}
            if _held(wide, others, trial).get(operand) == wanted:
                guarded.update(trial)
                return
    guarded[operand] = wanted

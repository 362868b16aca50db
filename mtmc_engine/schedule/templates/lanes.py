"""What masked lanes hold: which `other` each load needs, and where a tl.where is unavoidable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isnan

from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Dim
from mtmc_engine.schedule.templates.folds import INF, identity
from mtmc_engine.schedule.templates.space import resolved
from mtmc_engine.schedule.templates.tensors import Number, Value, is_float


@dataclass(frozen=True)
class Lanes:
    """What masked lanes hold.

    others: by load. guarded: what a tl.where puts into a value's. folding: what it puts into what
    one reduction sees, where others need the same value as something else.
    """

    others: Mapping[Value, Number]
    guarded: Mapping[Value, Number]
    folding: Mapping[Value, Number]


def masked_lanes(values: Sequence[Value], folds: Sequence[Value], reduced: Dim) -> Lanes:
    """The cheapest treatment of the lanes beyond the reduced block.

    values: of the kernel, operands first. folds: its reductions.
    """
    inside = set(reduced)
    wide = [value for value in values if inside & set(resolved(value.axes))]
    feeding_folds = feeding(folds)
    loads = [value for value in wide if value.kind == "load" and value in feeding_folds]
    best: Lanes | None = None
    for choice in _choices(loads):
        guarded: dict[Value, Number] = {}
        for at, fold in enumerate(folds):
            _guard(fold, folds[:at], guarded, wide, choice)
        held = _held(wide, choice, guarded)
        folding = {fold: _wanted(fold) for fold in folds if not _vanishes(fold, held, wide)}
        found = Lanes(choice, guarded, folding)
        if best is None or _cost(found) < _cost(best):
            best = found
        if not _cost(best):
            break
    return best or Lanes({}, {}, {})


def _cost(lanes: Lanes) -> int:
    return len(lanes.guarded) + len(lanes.folding)


def _wanted(fold: Value) -> Number:
    return identity(fold.fold, fold.operands[0].dtype)


def _vanishes(fold: Value, held: Mapping[Value, Number], wide: Sequence[Value]) -> bool:
    """Whether masked lanes change nothing in a reduction."""
    operand = fold.operands[0]
    return operand not in wide or held.get(operand) == _wanted(fold)


def feeding(roots: Sequence[Value]) -> set[Value]:
    """The roots and everything that they are computed from."""
    found: set[Value] = set()
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        if value not in found:
            found.add(value)
            waiting.extend(value.operands)
    return found


def _choices(loads: Sequence[Value]) -> list[dict[Value, Number]]:
    options = [
        (0.0, -INF, INF, 1.0) if is_float(load.dtype) else (0, *_extremes(load.dtype))
        for load in loads
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
    args = [_known(arg, held) if isinstance(arg, Value) else arg for arg in value.args]
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


def _zero(dtype: str) -> Number:
    if dtype == "bool":
        return False
    return 0.0 if is_float(dtype) else 0


def _known(value: Value, held: Mapping[Value, Number]) -> Number | None:
    if value.function is not None and not value.args:
        constant: Number = value.function.evaluate()
        return constant
    return held.get(value)


def _guard(
    fold: Value,
    before: Sequence[Value],
    guarded: dict[Value, Number],
    wide: Sequence[Value],
    others: Mapping[Value, Number],
) -> None:
    """Adds the one guard that makes masked lanes vanish in `fold`, where it needs one.

    None where it would harm the reductions `before`.
    """
    operand, wanted = fold.operands[0], _wanted(fold)
    held = _held(wide, others, guarded)
    if _vanishes(fold, held, wide):
        return
    for part in operand.operands:
        if (
            part.kind == "compute"
            and part in wide
            and part not in guarded
            and operand.args.count(part) == len(operand.args)
        ):
            trial = {**guarded, part: _zero(part.dtype)}
            if _held(wide, others, trial).get(operand) == wanted:
                guarded.update(trial)
                return
    after = _held(wide, others, {**guarded, operand: wanted})
    if all(_vanishes(f, after, wide) for f in before if _vanishes(f, held, wide)):
        guarded[operand] = wanted

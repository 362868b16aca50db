"""Comparing one output with the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from mtmc_engine.proof.tolerance import EPSILON, Bound
from mtmc_engine.proof.work.norms import as_double, chunks

# Share of a bound that is zero, or of something that cannot be measured; JSON has no infinity.
WRONG = 1e9


@dataclass(frozen=True)
class Comparison:
    """verdict: "" where it passes. share: error over bound, above 1 where it fails.

    index: of the worst element, with its expected and actual value. wrong: how many are wrong.
    """

    verdict: str
    share: float
    index: tuple[int, ...] = ()
    expected: Any = None
    actual: Any = None
    error: float = 0.0
    error_rms: float = 0.0
    wrong: int = 0


def compare_float(
    actual: torch.Tensor,
    result: torch.Tensor,
    truth: torch.Tensor,
    limits: Bound,
    ignore_nan: bool,
) -> Comparison:
    """Against the truth, within `limits`; where that or the reference is not finite, by kind.

    result: the reference's own, which decides whether NaN or infinity is right at a place.
    """
    largest, squares, count, wrong = 0.0, 0.0, 0, 0
    worst, strange = -1, -1
    for start, (a, r, t) in chunks(actual, result, truth):
        given, own, true = as_double(a), as_double(r), as_double(t)
        finite = torch.isfinite(own) & torch.isfinite(true)
        if not bool(finite.all()) or not bool(torch.isfinite(given).all()):
            odd = _odd(given, own, true, finite, ignore_nan)
            if strange < 0 and bool(odd.any()):
                strange = start + int(odd.flatten().nonzero()[0]) // (2 if a.is_complex() else 1)
            finite &= torch.isfinite(given)
        off = torch.where(finite, (given - true).abs(), torch.zeros_like(given))
        if not off.numel():
            continue
        top, at = off.flatten().max(0)
        wrong += int((off > limits.largest).sum())
        if float(top) > largest or worst < 0:
            largest = max(largest, float(top))
            worst = start + int(at) // (2 if a.is_complex() else 1)
        count += int(finite.sum())
        if float(top):
            squares += float(((off / top) ** 2).sum()) * float(top) ** 2
    rms = math.sqrt(squares / count) if count else 0.0
    share = max(_share(largest, limits.largest), _share(rms, limits.rms))
    found = Comparison("", share, error=largest, error_rms=rms, wrong=wrong)
    if strange >= 0:
        return _located(replace(found, verdict="NONFINITE", share=WRONG), actual, truth, strange)
    return _located(replace(found, verdict="NUMERIC" if share > 1 else ""), actual, truth, worst)


def _odd(
    given: torch.Tensor,
    own: torch.Tensor,
    true: torch.Tensor,
    finite: torch.Tensor,
    ignore_nan: bool,
) -> torch.Tensor:
    """Where NaN or infinity is wrong, or missing where it belongs.

    Where the reference overflows but the truth does not, both are right.
    """
    like_own = (given == own) | (torch.isnan(given) & torch.isnan(own))
    like_true = torch.isfinite(given) & torch.isfinite(true)
    odd = torch.where(finite, ~torch.isfinite(given), ~(like_own | like_true))
    if ignore_nan:
        odd &= ~torch.isnan(own)
    return odd


def _share(error: float, limit: float) -> float:
    if error == 0:
        return 0.0
    return min(error / limit, WRONG) if limit else WRONG


def _located(
    found: Comparison, actual: torch.Tensor, expected: torch.Tensor, flat: int
) -> Comparison:
    """The comparison with element number `flat` as the one that is shown; none where negative."""
    if flat < 0:
        return found
    return replace(
        found,
        index=_unflattened(flat, tuple(actual.shape)),
        expected=_number(expected.reshape(-1)[flat]),
        actual=_number(actual.reshape(-1)[flat]),
    )


def compare_exact(
    actual: torch.Tensor, expected: torch.Tensor, either: Sequence[torch.Tensor] = ()
) -> Comparison:
    """Integers and booleans: all equal.

    either: other values that are as good, such as both sides of a threshold that an input lies on.
    """
    wrong, first = 0, -1
    for start, (a, e, *others) in chunks(actual, expected, *either):
        unequal = a != e
        for other in others:
            unequal &= a != other
        if bool(unequal.any()):
            wrong += int(unequal.sum())
            first = start + int(unequal.nonzero()[0]) if first < 0 else first
    if first < 0:
        return Comparison("", 0.0)
    return _located(Comparison("NUMERIC", WRONG, wrong=wrong), actual, expected, first)


def compare_index(
    actual: torch.Tensor, expected: torch.Tensor, source: torch.Tensor, dim: int | None
) -> Comparison:
    """Positions: right where they point to the same value, so that ties may fall either way.

    Values count as the same within a few ulp of float32 arithmetic of the source's size.
    """
    if dim is None:
        source, axis = source.reshape(-1), 0
        chosen, right = actual.reshape(-1), expected.reshape(-1)
    else:
        axis = dim % max(source.dim(), 1)
        chosen, right = actual, expected
        if chosen.dim() < source.dim():
            chosen, right = chosen.unsqueeze(axis), right.unsqueeze(axis)
    outside = (chosen < 0) | (chosen >= source.shape[axis])
    if bool(outside.any()):
        first = int(outside.reshape(-1).nonzero()[0])
        wrong = int(outside.sum())
        return _located(Comparison("NUMERIC", WRONG, wrong=wrong), actual, expected, first)
    found = source.gather(axis, chosen.long()).double()
    best = source.gather(axis, right.long()).double()
    size = source.double().abs().nan_to_num(0, 0, 0)
    slack = 16 * EPSILON["float32"] * float(size.max()) if size.numel() else 0.0
    if not source.is_floating_point():
        slack = 0.0
    off = (found - best).abs()
    bad = ~((off <= slack) | (found == best) | (torch.isnan(found) & torch.isnan(best)))
    twice = _repeated(chosen, axis)
    if bool(bad.any()) or twice:
        first = int(bad.reshape(-1).nonzero()[0]) if bool(bad.any()) else 0
        wrong = int(bad.sum())
        return _located(Comparison("NUMERIC", WRONG, wrong=wrong), actual, expected, first)
    return Comparison("", 0.0)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal element by element, NaN equal to NaN."""
    if one.is_floating_point():
        return bool(torch.allclose(one, other, rtol=0.0, atol=0.0, equal_nan=True))
    return bool(torch.equal(one, other))


def _repeated(chosen: torch.Tensor, axis: int) -> bool:
    """Whether one position is named twice along the axis."""
    if chosen.dim() == 0 or chosen.shape[axis] < 2:
        return False
    ordered = chosen.sort(dim=axis).values
    ahead = ordered.narrow(axis, 1, ordered.shape[axis] - 1)
    behind = ordered.narrow(axis, 0, ordered.shape[axis] - 1)
    return bool((ahead == behind).any())


def _unflattened(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def _number(value: torch.Tensor) -> Any:
    """A JSON value; NaN, infinities and complex numbers in words."""
    number = value.item()
    if isinstance(number, complex) or (isinstance(number, float) and not math.isfinite(number)):
        return str(number)
    return number

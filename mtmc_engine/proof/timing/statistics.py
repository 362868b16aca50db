"""From paired samples to a ratio with its interval, and to a decision."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import median

from mtmc_engine.core.measurement import Ratio
from mtmc_engine.core.verdict import Class

LEAST_MARGIN = 0.01
_RESAMPLES = 2000
_SEED = 20251


def round_medians(rounds: Sequence[Sequence[float]]) -> list[float]:
    """The median sample of each round."""
    return [median(samples) for samples in rounds]


def paired_ratio(baseline: Sequence[float], candidate: Sequence[float]) -> Ratio:
    """How many times faster the candidate is than the baseline.

    baseline, candidate: time of each round, in pairs. value: median of the paired ratios.
    low, high: 95 % percentile interval of that median under resampling of rounds (B. Efron,
    Bootstrap methods, 1979), with a fixed seed, so that the same samples give the same interval.
    """
    ratios = [b / c for b, c in zip(baseline, candidate, strict=True)]
    value = median(ratios)
    if len(ratios) < 3:
        return Ratio(value, min(ratios), max(ratios))
    generator = random.Random(_SEED)
    medians = sorted(median(generator.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    tail = int(0.025 * _RESAMPLES)
    return Ratio(value, medians[tail], medians[-tail - 1])


def noise_of(first: Sequence[float], second: Sequence[float]) -> float:
    """How far apart two copies of one program seem, relative: the farther end of the interval."""
    ratio = paired_ratio(first, second)
    return max(abs(ratio.low - 1), abs(ratio.high - 1))


def decide(ratio: Ratio, noise: float) -> Class:
    """FASTER, SLOWER, SAME or AMBIGUOUS, with a margin of 1 % or the noise, what is larger."""
    margin = max(LEAST_MARGIN, noise)
    if ratio.low > 1 + margin:
        return Class.FASTER
    if ratio.high < 1 / (1 + margin):
        return Class.SLOWER
    if ratio.low >= 1 / (1 + margin) and ratio.high <= 1 + margin:
        return Class.SAME
    return Class.AMBIGUOUS


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio:
    """Over several input sets; interval ends are averaged the same way."""

    def mean(values: Sequence[float]) -> float:
        return math.exp(sum(map(math.log, values)) / len(values))

    return Ratio(
        mean([r.value for r in ratios]),
        mean([r.low for r in ratios]),
        mean([r.high for r in ratios]),
    )

"""From paired samples to a ratio with its interval, and to a decision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from mtmc_engine.core.measurement import Ratio
from mtmc_engine.core.verdict import Class

LEAST_MARGIN = 0.01
# Two-sided 95 % of a normal distribution.
_Z = 1.96


def round_medians(rounds: Sequence[Sequence[float]]) -> list[float]:
    """The median sample of each round."""
    return [median(samples) for samples in rounds]


def paired_ratio(baseline: Sequence[float], candidate: Sequence[float]) -> Ratio:
    """How many times faster the candidate is than the baseline.

    baseline, candidate: time of each round, in pairs. value: the pseudo-median of the paired
    ratios, that is the median over the geometric means of all pairs of them (J. L. Hodges and
    E. L. Lehmann, Estimates of location based on rank tests, 1963): as robust as it needs to be
    against bursts, and less noisy by a fifth than their plain median. low, high: its 95 %
    interval, those values that Wilcoxon's signed-rank test does not reject; it only asks that
    two copies of one program are as likely to come out one way as the other.
    """
    ratios = [b / c for b, c in zip(baseline, candidate, strict=True)]
    if len(ratios) < 3:
        return Ratio(median(ratios), min(ratios), max(ratios))
    logs = [math.log(ratio) for ratio in ratios]
    means = sorted((a + b) / 2 for i, a in enumerate(logs) for b in logs[i:])
    outside = _outside(len(logs))
    return Ratio(math.exp(median(means)), math.exp(means[outside]), math.exp(means[-outside - 1]))


def _outside(count: int) -> int:
    """How many of the smallest means of pairs lie below the interval (normal approximation)."""
    pairs = count * (count + 1)
    return max(0, math.floor(pairs / 4 - _Z * math.sqrt(pairs * (2 * count + 1) / 24)))


def noise_of(first: Sequence[float], second: Sequence[float]) -> float:
    """How far apart two copies of one program seem, relative to one.

    The larger of how far the ratio is from one and of half the width of its interval.
    """
    ratio = paired_ratio(first, second)
    return max(abs(ratio.value - 1), (ratio.high - ratio.low) / 2)


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

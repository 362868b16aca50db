"""Totals of a bench, by family and over all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import Struct

from mtmc_engine.bench.line import FAILED, Line
from mtmc_engine.plan.tree import MARGIN

EAGER, COMPILED = "eager", "torch.compile"
# "At least as fast" allows for noise.
_WITHIN = 0.02
_HALF = 0.5
ALL = "all"


class Speeds(Struct, frozen=True):
    """Ratios to one contestant over the tasks that have one. worst: the least, and whose it is.

    at_least: share of these tasks that are at least as fast, within 2 %.
    """

    count: int
    geometric_mean: float
    median: float
    worst: float
    worst_task: str
    at_least: float


class Totals(Struct, frozen=True):
    """One family, or "all".

    proven, faster: shares of all tasks; faster than eager by the lower end of the interval.
    failed: tasks without an answer; they count in every share and in no mean. So do tasks that
            are estimated where others are measured.
    own_half: share of tasks whose own kernels carry at least half of the device time, among
              those where it was measured; None where it never was.
    slower: answers slower than eager, by the upper end of the interval.
    seconds: of a task, on average, from its opening to its line.
    """

    family: str
    tasks: int
    failed: int
    proven: float
    faster: float
    slower: int
    own_half: float | None
    eager: Speeds | None
    compiled: Speeds | None
    floor_share: float | None
    gpu_s: float
    seconds: float


def totals_of(lines: Sequence[Line]) -> tuple[Totals, ...]:
    """Families in the order of their first task, then all together."""
    families = dict.fromkeys(line.family for line in lines)
    found = [_totals(f, [line for line in lines if line.family == f]) for f in families]
    return (*found, _totals(ALL, lines)) if lines else ()


def worst_of(lines: Sequence[Line], count: int = 10) -> tuple[Line, ...]:
    """Failed tasks, then the least ratios: to torch.compile, or to eager where that is all."""
    return tuple(sorted(lines, key=_standing)[:count])


def _standing(line: Line) -> tuple[bool, float]:
    ratio = line.against.get(COMPILED) or line.against.get(EAGER)
    return line.verdict != FAILED, ratio.value if ratio else 0.0


def comparable(lines: Sequence[Line]) -> Sequence[Line]:
    """The measured ones; all where nothing was measured."""
    return [line for line in lines if line.time_kind == "measured"] or lines


def _totals(family: str, lines: Sequence[Line]) -> Totals:
    count = len(lines)
    shares = [line.own_share for line in lines if line.own_share is not None]
    floors = [line.floor_share for line in comparable(lines) if line.floor_share]
    compared = comparable(lines)
    eager = [line.against[EAGER] for line in compared if EAGER in line.against]
    return Totals(
        family=family,
        tasks=count,
        failed=sum(line.verdict == FAILED for line in lines),
        proven=sum(line.proven for line in lines) / count,
        faster=sum(ratio.low > 1 + MARGIN for ratio in eager) / count,
        slower=sum(ratio.high < 1 - MARGIN for ratio in eager),
        own_half=sum(share >= _HALF for share in shares) / len(shares) if shares else None,
        eager=_speeds(compared, EAGER),
        compiled=_speeds(compared, COMPILED),
        floor_share=geometric_mean(floors) if floors else None,
        gpu_s=sum(line.gpu_s for line in lines) / count,
        seconds=sum(line.seconds for line in lines) / count,
    )


def _speeds(lines: Sequence[Line], name: str) -> Speeds | None:
    found = [(line.against[name].value, line.task) for line in lines if name in line.against]
    if not found:
        return None
    values = [value for value, _ in found]
    worst, task = min(found)
    return Speeds(
        count=len(found),
        geometric_mean=geometric_mean(values),
        median=median(values),
        worst=worst,
        worst_task=task,
        at_least=sum(value >= 1 - _WITHIN for value in values) / len(values),
    )


def geometric_mean(values: Iterable[float]) -> float:
    """Of positive values, of which there is at least one."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))

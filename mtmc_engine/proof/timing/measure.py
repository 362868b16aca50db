"""From samples to a measurement and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from mtmc_engine.core.measurement import Contestant, Measurement, Ratio
from mtmc_engine.core.verdict import Class
from mtmc_engine.proof.timing.statistics import (
    decide,
    geometric_mean,
    noise_of,
    paired_ratio,
    round_medians,
)
from mtmc_engine.proof.timing.timer import CANDIDATE, COPY, EAGER, Sampled, Timed

_MOST_SAMPLES = 200
# Device work that the events did not see: the caller waits this much longer than both the
# host's own work and the events explain.
_HIDDEN_FACTOR = 1.5
_HIDDEN_US = 100.0
# By the clock of another process a call takes so much more than events and its own launch say.
_CLOCK_US = 25.0
# Work that goes on after the event that ends a call, beyond what waiting for a device takes.
_TAIL_SHARE, _TAIL_US = 0.25, 20.0
# Under the floor by more than clocks and rounding explain.
_UNDER = 0.95


@dataclass(frozen=True)
class Found:
    """verdict against the baseline, in one sentence, with what is measured."""

    verdict: Class
    sentence: str
    measurement: Measurement
    evidence: dict[str, Any]


def judge_times(
    timed: Timed, baseline: str, floor_us: float, least_us: float, original: str = EAGER
) -> Found:
    """The candidate against `baseline`, over all input sets.

    floor_us: of the first input set, for display. least_us: no honest program is faster (the
    floor less what may stay in the L2 cache). original: the contestant that is the original, ""
    where the candidate is it itself. Samples of the candidate must be there.
    """
    sets = timed.sets
    noise = max(_noise(one, baseline) for one in sets)
    names = [n for n in sets[0].device_us if n not in (CANDIDATE, COPY)]
    per_set = {name: [_ratio(one, name) for one in sets] for name in names}
    against = {name: geometric_mean(ratios) for name, ratios in per_set.items()}
    if original in against:
        against["original"] = against[original]
    measurement = Measurement(
        kind=timed.kind,
        time_us=_time(sets[0], CANDIDATE),
        against=against,
        floor_us=floor_us,
        method=sets[0].method,
        contestants=tuple(_contestant(sets[0], name) for name in (CANDIDATE, *names)),
        call_us=sets[0].call_us.get(CANDIDATE),
        noise=noise,
        device=timed.device,
    )
    evidence: dict[str, Any] = {
        "noise": noise,
        "sets": len(sets),
        "worst": {name: min(r.value for r in ratios) for name, ratios in per_set.items()},
        "missing": timed.missing,
    }
    evidence |= _clocks(sets[0], timed)
    hidden, wrong = _hidden(sets), timed.rechecked
    if wrong.verdict and not hidden:
        evidence |= wrong.evidence
        return Found(Class(wrong.verdict), wrong.sentence, measurement, evidence)
    suspicion = _below(measurement.time_us, least_us) or hidden
    if suspicion:
        return Found(Class.SUSPICIOUS, suspicion, measurement, evidence)
    verdict = decide(against[baseline], noise)
    return Found(
        verdict, _sentence(verdict, against[baseline], baseline, noise), measurement, evidence
    )


def _clocks(one: Sampled, timed: Timed) -> dict[str, Any]:
    """What the clocks beside the events said, and how many outputs were compared."""
    return {
        "wall_us": one.wall_us.get(CANDIDATE),
        "call_us": one.call_us.get(CANDIDATE),
        "enqueue_us": one.enqueue_us.get(CANDIDATE),
        "tail_us": one.hidden_us.get(CANDIDATE),
        "rounds": len(one.device_us[CANDIDATE]),
        "rounds_throttled": one.throttled,
        "outputs_rechecked": timed.rechecked.calls,
        "gpu_s": timed.gpu_s,
    }


def _noise(one: Sampled, baseline: str) -> float:
    if COPY not in one.device_us:
        return 0.0
    return noise_of(round_medians(one.device_us[baseline]), round_medians(one.device_us[COPY]))


def _ratio(one: Sampled, baseline: str) -> Ratio:
    return paired_ratio(
        round_medians(one.device_us[baseline]), round_medians(one.device_us[CANDIDATE])
    )


def _time(one: Sampled, name: str) -> float:
    return median(round_medians(one.device_us[name]))


def _contestant(one: Sampled, name: str) -> Contestant:
    samples = [sample for samples in one.device_us[name] for sample in samples]
    return Contestant(name, _time(one, name), tuple(samples[:_MOST_SAMPLES]))


def _below(time_us: float, least_us: float) -> str:
    """What a time under the floor means, "" for any other."""
    if time_us >= _UNDER * least_us:
        return ""
    return (
        f"{time_us:.1f} µs is less than the {least_us:.1f} µs that moving its bytes takes: "
        "it cannot have done the work"
    )


def _hidden(sets: Sequence[Sampled]) -> str:
    """Where the clocks show work that the events do not, "" where they agree."""
    for one in sets:
        events, call = _time(one, CANDIDATE), one.call_us.get(CANDIDATE, 0.0)
        explained = max(events, one.enqueue_us.get(CANDIDATE, 0.0))
        unexplained = one.unexplained_us.get(CANDIDATE, call - explained)
        if unexplained > (_HIDDEN_FACTOR - 1) * explained + _HIDDEN_US:
            return (
                f"the device is busy for {call:.0f} µs a call, but its stream only for "
                f"{events:.0f} µs: work runs where it is not timed"
            )
        wall = one.wall_us.get(CANDIDATE, 0.0)
        if wall > _HIDDEN_FACTOR * explained + _CLOCK_US:
            return (
                f"by the judge's own clock a call takes {wall:.0f} µs, by its events "
                f"{events:.0f} µs: the clocks disagree"
            )
        tail = one.hidden_us.get(CANDIDATE, 0.0) - _usual_tail(one)
        if tail > _TAIL_SHARE * events + _TAIL_US:
            return (
                f"the device stays busy for {tail:.0f} µs after the call's last event: "
                "work runs where it is not timed"
            )
        if CANDIDATE in one.late:
            return "its output still changes after the device is idle: it is not ready in time"
    return ""


def _usual_tail(one: Sampled) -> float:
    """How long waiting for an idle device takes, by the other programs."""
    others = [us for name, us in one.hidden_us.items() if name != CANDIDATE]
    return min(others, default=0.0)


def _sentence(verdict: Class, ratio: Ratio, baseline: str, noise: float) -> str:
    figures = f"{ratio.value:.3f}x against {baseline} ({ratio.low:.3f} to {ratio.high:.3f})"
    words = {
        Class.FASTER: "faster",
        Class.SLOWER: "slower",
        Class.SAME: "as fast",
        Class.AMBIGUOUS: "not proven faster or slower",
    }[verdict]
    return f"{words}: {figures}, noise {noise:.1%}"

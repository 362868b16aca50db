"""Decisions on simulated timings: noise, drift, bursts, and gains that are there."""

import random

import pytest

from mtmc_engine.core.measurement import Ratio
from mtmc_engine.proof.timing.measure import judge_times
from mtmc_engine.proof.timing.replay import ReplayTimer, record
from mtmc_engine.proof.timing.statistics import (
    decide,
    geometric_mean,
    noise_of,
    paired_ratio,
    round_medians,
)
from mtmc_engine.proof.timing.timer import CANDIDATE, COPY, EAGER, Sampled, Timed

ROUNDS, SAMPLES = 30, 5


def simulated(seed, gain, noise=0.02, drift=0.1, bursts=0.05):
    """Rounds of baseline, its copy and a candidate that is `gain` times faster."""
    source = random.Random(seed)
    found = {EAGER: [], COPY: [], CANDIDATE: []}
    for number in range(ROUNDS):
        level = 100.0 * (1 + drift * number / ROUNDS)
        for name, samples in found.items():
            base = level / gain if name == CANDIDATE else level
            samples.append(
                [
                    base
                    * (1 + abs(source.gauss(0, noise)))
                    * (source.uniform(1.2, 3) if source.random() < bursts else 1)
                    for _ in range(SAMPLES)
                ]
            )
    return found


def verdict(rounds, floor_us=1.0, call_us=120.0):
    sampled = Sampled(rounds, {CANDIDATE: call_us}, {CANDIDATE: 10.0}, "simulated")
    return judge_times(Timed((sampled,)), EAGER, floor_us, floor_us)


def test_a_copy_is_never_faster_by_noise():
    found = [verdict(simulated(seed, 1.0)).verdict for seed in range(200)]
    assert sum(one == "FASTER" for one in found) <= 2
    assert sum(one in ("SAME", "AMBIGUOUS") for one in found) >= 190


def test_a_gain_of_five_percent_is_found():
    found = [verdict(simulated(seed, 1.05)).verdict for seed in range(100)]
    assert sum(one == "FASTER" for one in found) >= 90


def test_a_loss_is_slower():
    assert verdict(simulated(1, 0.8)).verdict == "SLOWER"


def test_the_same_samples_give_the_same_interval():
    rounds = simulated(3, 1.1)
    pair = round_medians(rounds[EAGER]), round_medians(rounds[CANDIDATE])
    assert paired_ratio(*pair) == paired_ratio(*pair)
    ratio = paired_ratio(*pair)
    assert ratio.low <= ratio.value <= ratio.high


def test_noise_widens_the_margin():
    assert decide(Ratio(1.03, 1.02, 1.04), noise=0.0) == "FASTER"
    assert decide(Ratio(1.03, 1.02, 1.04), noise=0.03) == "AMBIGUOUS"
    assert decide(Ratio(1.0, 0.995, 1.005), noise=0.0) == "SAME"


def test_noise_is_measured_from_two_copies():
    assert noise_of([100.0] * 10, [100.0] * 10) == 0
    assert noise_of([100.0] * 10, [104.0] * 10) == pytest.approx(4 / 104)


def test_below_the_floor_is_suspicious():
    found = verdict(simulated(1, 50.0), floor_us=20.0)
    assert found.verdict == "SUSPICIOUS"
    assert "cannot have done the work" in found.sentence


def test_work_on_a_side_stream_is_suspicious():
    found = verdict(simulated(1, 50.0), call_us=400.0)
    assert found.verdict == "SUSPICIOUS"
    assert "not timed" in found.sentence


def test_several_shapes_are_averaged_geometrically():
    mean = geometric_mean([Ratio(2.0, 1.9, 2.1), Ratio(0.5, 0.4, 0.6)])
    assert mean.value == pytest.approx(1.0)


async def test_a_recording_is_replayed(tmp_path):
    sampled = Sampled(simulated(5, 1.5), {}, {}, "recorded")
    record(Timed((sampled,)), tmp_path / "samples.json")
    timed = await ReplayTimer.of(tmp_path / "samples.json").time(None, lambda *_: None)
    assert judge_times(timed, EAGER, 1.0, 1.0).verdict == "FASTER"

"""Samples as a GPU gives them, without one: a recording drawn anew, and models of noise.

Each model gives, for every entrant, rounds of five samples relative to the entrant's true time.
"""

import json
from pathlib import Path

import numpy as np

from mtmc_engine.proof.timing.measure import judge_times
from mtmc_engine.proof.timing.timer import CANDIDATE, COPY, EAGER, Sampled, Timed

SAMPLES = 5
# What the default budget gives programs of up to a few milliseconds, and what it gives at least.
ROUNDS, LEAST_ROUNDS = 60, 12

RECORDING = Path(__file__).parents[1] / "proof" / "data" / "h200_noise.json"
_CONTESTS = json.loads(RECORDING.read_text())["contests"].values()
_SERIES = [
    np.array(samples).reshape(-1, SAMPLES) for contest in _CONTESTS for samples in contest.values()
]


def recorded(generator, rounds, entrants):
    """Rounds of one recorded program, drawn anew for each entrant."""
    series = _SERIES[generator.integers(len(_SERIES))]
    return [series[generator.integers(len(series), size=rounds)] for _ in range(entrants)]


def jitter(generator, rounds, entrants, size=0.02):
    """Log-normal, independent from sample to sample."""
    shape = (rounds, SAMPLES)
    return [np.exp(generator.normal(0, size, shape)) for _ in range(entrants)]


def heavy_jitter(generator, rounds, entrants):
    """5 % from sample to sample: more than three times what the recordings show."""
    return jitter(generator, rounds, entrants, 0.05)


def drift(generator, rounds, entrants):
    """The card gets slower by 10 % from the first round to the last."""
    level = 1 + 0.1 * np.linspace(0, 1, rounds)[:, None]
    return [level * one for one in jitter(generator, rounds, entrants)]


def bursts(generator, rounds, entrants):
    """One sample in twelve takes 1.2 to 3 times as long."""
    found = []
    for one in jitter(generator, rounds, entrants):
        hit = generator.random(one.shape) < 1 / 12
        found.append(np.where(hit, one * generator.uniform(1.2, 3, one.shape), one))
    return found


def disturbed_rounds(generator, rounds, entrants):
    """One round in twelve of an entrant takes 1.1 to 2 times as long, all its samples alike."""
    found = []
    for one in jitter(generator, rounds, entrants):
        hit = generator.random((rounds, 1)) < 1 / 12
        found.append(np.where(hit, one * generator.uniform(1.1, 2, (rounds, 1)), one))
    return found


def two_clocks(generator, rounds, entrants):
    """The clock changes between two states 8 % apart, every forty samples of all on average."""
    flips = generator.random((rounds, SAMPLES, entrants)) < 1 / 40
    slow = np.cumsum(flips).reshape(flips.shape) % 2
    noise = jitter(generator, rounds, entrants, 0.01)
    return [one * (1 + 0.08 * slow[:, :, i]) for i, one in enumerate(noise)]


def throttled(generator, rounds, entrants):
    """At some round the clocks fall by a quarter, and stay there."""
    at = generator.integers(rounds)
    level = np.where(np.arange(rounds) < at, 1.0, 1.25)[:, None]
    return [level * one for one in jitter(generator, rounds, entrants, 0.01)]


MODELS = {
    "recorded on an H200": recorded,
    "jitter 2 %": jitter,
    "jitter 5 %": heavy_jitter,
    "drift": drift,
    "bursts": bursts,
    "disturbed rounds": disturbed_rounds,
    "two clocks": two_clocks,
    "throttled": throttled,
}


def verdict(model, seed, gain, rounds=ROUNDS):
    """What the real decision says of a candidate that is `gain` times faster than eager."""
    generator = np.random.default_rng(seed)
    baseline, copy, candidate = MODELS[model](generator, rounds, 3)
    device_us = {
        EAGER: (100.0 * baseline).tolist(),
        COPY: (100.0 * copy).tolist(),
        CANDIDATE: (100.0 / gain * candidate).tolist(),
    }
    sampled = Sampled(device_us, {CANDIDATE: 120.0}, {CANDIDATE: 10.0}, "simulated")
    return judge_times(Timed((sampled,)), EAGER, 1.0, 1.0).verdict


def share(model, gain, wanted, runs, rounds=ROUNDS):
    """How often a verdict is among `wanted`."""
    return sum(verdict(model, seed, gain, rounds) in wanted for seed in range(runs)) / runs

"""How often the timing decision is wrong, by simulation: false gains, missed gains, luck."""

import os
from statistics import mean

import numpy as np
import pytest
from timing_noise import LEAST_ROUNDS, MODELS, ROUNDS, share, verdict

from mtmc_engine.proof.timing.statistics import paired_ratio, round_medians

SOAK_RUNS = int(os.environ.get("MTMC_SOAK_RUNS", "3000"))
# One in a hundred, and what a sample of that size may show of it.
FALSE, POWER = 0.01, 0.90


@pytest.mark.case(27)
@pytest.mark.parametrize("model", MODELS)
def test_a_copy_is_not_faster(model):
    assert share(model, 1.0, {"FASTER"}, 100) <= FALSE
    assert share(model, 1.0, {"SAME", "AMBIGUOUS"}, 100) >= 0.95


@pytest.mark.parametrize("model", MODELS)
def test_three_percent_are_found(model):
    assert share(model, 1.03, {"FASTER"}, 60) >= POWER


def test_a_loss_of_five_percent_is_seen():
    for model in MODELS:
        assert verdict(model, 1, 0.95) == "SLOWER", model


def luck(model, seed, candidates, gain=1.0, rounds=ROUNDS):
    """The best of several equal candidates: its ratio when it was chosen, and measured afresh."""
    generator = np.random.default_rng(seed)
    ratios = []
    for _ in range(candidates):
        baseline, candidate = MODELS[model](generator, rounds, 2)
        ratios.append(_ratio(baseline, candidate / gain))
    baseline, again = MODELS[model](generator, 2 * rounds, 2)
    return max(ratios), _ratio(baseline, again / gain)


def _ratio(baseline, candidate):
    return paired_ratio(round_medians(baseline.tolist()), round_medians(candidate.tolist())).value


def biases(model, runs, candidates=16):
    """Mean of the ratio less its true value: of the chosen, and of the one measured afresh."""
    chosen, afresh = zip(*(luck(model, seed, candidates) for seed in range(runs)), strict=True)
    return mean(chosen) - 1, mean(afresh) - 1


def test_measuring_the_winner_afresh_removes_its_luck():
    chosen, afresh = biases("jitter 5 %", 25)
    assert chosen > 0.005
    assert abs(afresh) < chosen / 4


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_false_and_missed_gains_in_full():
    head = ("noise", "copy FASTER", "copy SLOWER", "copy, 12 rounds", "3 % found", "2 % found")
    lines = [f"{head[0]:<20}" + "".join(f"{name:>17}" for name in head[1:])]
    for model in MODELS:
        found = (
            share(model, 1.0, {"FASTER"}, SOAK_RUNS),
            share(model, 1.0, {"SLOWER"}, SOAK_RUNS),
            share(model, 1.0, {"FASTER"}, SOAK_RUNS, LEAST_ROUNDS),
            share(model, 1.03, {"FASTER"}, SOAK_RUNS),
            share(model, 1.02, {"FASTER"}, SOAK_RUNS),
        )
        lines.append(f"{model:<20}" + "".join(f"{value:>17.2%}" for value in found))
        assert max(found[:3]) <= FALSE, lines[-1]
        assert found[3] >= POWER, lines[-1]
    print("\n" + "\n".join(lines))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_luck_of_the_winner_in_full():
    print(f"\n{'noise':<20}{'best of 16':>17}{'measured afresh':>17}")
    for model in MODELS:
        chosen, afresh = biases(model, SOAK_RUNS // 20)
        print(f"{model:<20}{chosen:>+17.2%}{afresh:>+17.2%}")
        assert abs(afresh) < 0.003

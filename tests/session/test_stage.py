"""The time that is left of a proof's stage."""

import pytest

from mtmc_engine.core.verdict import Gate
from mtmc_engine.session.stage import Stage, phase_of
from mtmc_engine.system.config import StageLimits

LIMITS = StageLimits(compile_s=100, reference_s=30, values_s=20, timing_s=300)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def stage(clock):
    return Stage(LIMITS, clock)


def test_before_and_between_stages_nothing_runs_out(stage):
    assert stage.left_s is None
    for gate in (Gate.PARSE, Gate.INTEGRITY):
        stage.enter(gate)
        assert stage.left_s is None


def test_gates_of_one_child_share_their_time(stage, clock):
    stage.enter(Gate.IMPORT)
    assert stage.left_s == 100
    clock.now += 40
    stage.enter(Gate.COMPILE)
    assert stage.left_s == 60
    stage.enter(Gate.LAUNCH)
    assert stage.left_s == 50  # the reference's children and the candidate's
    clock.now += 10
    stage.enter(Gate.VALUES)
    assert stage.left_s == 40
    clock.now += 400
    assert stage.left_s == 0
    stage.enter(Gate.INTEGRITY)
    stage.enter(Gate.TIMING)
    assert stage.left_s == 300


def test_the_phases_of_gates():
    assert [phase_of(gate) for gate in (Gate.IMPORT, Gate.VALUES, Gate.TIMING)] == [
        "prove",
        "prove",
        "time",
    ]

"""Models and states for the planners' tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "plan"))

from plan_tasks import linear_relu_softmax
from step_phrases import PHRASES

from mtmc_engine.core.action import Action
from mtmc_engine.plan.state import PastStep, State
from mtmc_engine.schedule.cost import cost_of, estimate_us
from mtmc_engine.schedule.regions import root
from mtmc_engine.system.model_file import bundled


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory) -> Path:
    """A llama model with random float32 weights, under half a megabyte."""
    pytest.importorskip("llama_cpp")
    pytest.importorskip("gguf")
    import tiny_model

    return tiny_model.write(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="session")
def bundled_gguf() -> Path:
    pytest.importorskip("llama_cpp")
    path = bundled()
    if path is None:
        pytest.skip("the bundled model is not installed")
    return path


@pytest.fixture
def legal() -> tuple[Action, ...]:
    return tuple(Action(phrase.split()[0], phrase) for phrase in PHRASES)


@pytest.fixture(scope="session")
def state() -> State:
    """The second step of a matmul, relu and softmax; times are estimates for sm_90."""
    task = linear_relu_softmax()
    schedule = root(task.graph)
    costs = cost_of(task, schedule, task.device)
    return State(
        task,
        schedule,
        costs,
        estimate_us(costs, task.device),
        history=(PastStep("vectorize r2", "UNTIMED", 0.9, kept=False),),
        step=2,
    )

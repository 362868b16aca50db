"""Roofline, uniform and mixed planners, and planners by name."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from plan_tasks import linear_relu_softmax, pointwise_and_softmax

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.task import Task
from mtmc_engine.plan.state import State
from mtmc_engine.planner import make
from mtmc_engine.planner.llama import LlamaPlanner
from mtmc_engine.planner.make import make_planner
from mtmc_engine.planner.mixed import MixedPlanner, mix
from mtmc_engine.planner.roofline import RooflinePlanner, promise, tuning_prior
from mtmc_engine.planner.seam import softmax
from mtmc_engine.planner.uniform import UniformPlanner
from mtmc_engine.schedule.cost import cost_of, estimate_us
from mtmc_engine.schedule.legal import apply_action, legal_actions
from mtmc_engine.schedule.regions import root
from mtmc_engine.system.processes import children_of


def state_of(task: Task, schedule=None) -> State:
    schedule = schedule or root(task.graph)
    costs = cost_of(task, schedule, task.device)
    return State(task, schedule, costs, estimate_us(costs, task.device))


def legal_of(state: State) -> tuple[Action, ...]:
    return legal_actions(state.task, state.schedule, state.device)


# -- roofline --------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [linear_relu_softmax(), pointwise_and_softmax()])
async def test_roofline_ranks_all_legal_actions(task):
    state = state_of(task)
    legal = legal_of(state)
    ranked = await RooflinePlanner().propose(state, legal)
    assert sorted(o.action.phrase for o in ranked) == sorted(a.phrase for a in legal)
    assert sum(o.probability for o in ranked) == pytest.approx(1)
    assert list(ranked) == sorted(ranked, key=lambda o: -o.probability)
    assert ranked[0].parts == {"roofline": ranked[0].probability}


@pytest.mark.parametrize("task", [linear_relu_softmax(), pointwise_and_softmax()])
async def test_roofline_follows_a_plan_that_ends_in_stop_and_is_faster(task):
    state = state_of(task)
    first_us = state.time_us
    for _ in range(8):
        best = (await RooflinePlanner().propose(state, legal_of(state)))[0].action
        if best.kind == "stop":
            break
        state = state_of(task, apply_action(task, state.schedule, best))
    assert best.kind == "stop"
    assert state.time_us < first_us / 1.05


async def test_roofline_prefers_to_fuse_what_moves_the_same_bytes_twice():
    state = state_of(pointwise_and_softmax())
    best = (await RooflinePlanner().propose(state, legal_of(state)))[0].action
    assert best.kind == "fuse"


def test_an_action_is_worth_the_time_that_the_cost_model_saves():
    state = state_of(pointwise_and_softmax())
    fuse = next(a for a in legal_of(state) if a.kind == "fuse")
    after = state_of(state.task, apply_action(state.task, state.schedule, fuse))
    assert promise(state, fuse) >= math.log(state.time_us / after.time_us) > 0


def test_an_enabling_step_is_credited_with_the_step_that_it_enables():
    state = state_of(pointwise_and_softmax())
    lower = next(a for a in legal_of(state) if a.kind == "lower" and a.region == "r2")
    after = state_of(state.task, apply_action(state.task, state.schedule, lower))
    assert promise(state, lower) > math.log(state.time_us / after.time_us)


def test_a_step_that_can_only_be_undone_earns_nothing():
    state = state_of(pointwise_and_softmax())
    fuse = next(a for a in legal_of(state) if a.kind == "fuse")
    fused = state_of(state.task, apply_action(state.task, state.schedule, fuse))
    library = next(a for a in legal_of(fused) if a.kind == "library")
    assert promise(fused, library) < -0.5


@pytest.mark.parametrize("kind", ["retile", "pipeline", "vectorize"])
def test_tuning_is_worth_more_where_times_are_measured_and_the_roof_is_far(kind):
    state = state_of(pointwise_and_softmax())
    tuning = Action(kind, f"{kind} r1", "r1")
    first, *others = state.costs
    far = replace(
        state, time_kind="measured", costs=(replace(first, of_peak=0.2, share=0.9), *others)
    )
    near = replace(far, costs=(replace(first, of_peak=0.95, share=0.9), *others))
    assert tuning_prior(far, tuning) > tuning_prior(near, tuning) > tuning_prior(state, tuning)
    assert tuning_prior(state, tuning) == 0
    assert tuning_prior(far, Action("lower", "lower r1", "r1")) == 0


# -- uniform ---------------------------------------------------------------------------------


async def test_uniform_is_even_reproducible_and_stops_last(state, legal):
    ranked = await UniformPlanner(seed=1).propose(state, legal)
    again = await UniformPlanner(seed=1).propose(state, legal)
    later = await UniformPlanner(seed=1).propose(replace(state, step=3), legal)
    assert {o.probability for o in ranked} == {1 / len(legal)}
    assert ranked == again
    assert [o.action for o in later] != [o.action for o in ranked]
    assert ranked[-1].action.kind == "stop"


# -- mixed -----------------------------------------------------------------------------------


def scored(legal, *probabilities) -> tuple[ScoredAction, ...]:
    return tuple(ScoredAction(a, p) for a, p in zip(legal, probabilities, strict=True))


def test_the_mix_is_a_weighted_geometric_mean(legal):
    three = legal[:3]
    opinion = scored(three, 0.7, 0.2, 0.1)
    evidence = scored(three, 0.1, 0.3, 0.6)
    mixed = {o.action.phrase: o for o in mix(three, opinion, evidence, 0.2)}
    raw = [0.7**0.2 * 0.1**0.8, 0.2**0.2 * 0.3**0.8, 0.1**0.2 * 0.6**0.8]
    for action, value in zip(three, raw, strict=True):
        assert mixed[action.phrase].probability == pytest.approx(value / sum(raw))
    assert mixed[three[0].phrase].parts == {"llama": 0.7, "roofline": 0.1}


def test_a_weight_of_one_or_nought_is_one_planner_alone(legal):
    three = legal[:3]
    opinion, evidence = scored(three, 0.7, 0.2, 0.1), scored(three, 0.0, 0.3, 0.7)
    only_model = {o.action.phrase: o.probability for o in mix(three, opinion, evidence, 1.0)}
    only_roof = {o.action.phrase: o.probability for o in mix(three, opinion, evidence, 0.0)}
    assert [only_model[a.phrase] for a in three] == pytest.approx([0.7, 0.2, 0.1])
    assert [only_roof[a.phrase] for a in three] == pytest.approx([0.0, 0.3, 0.7])


def test_softmax_survives_large_scores():
    assert softmax([1e5, 1e5 + 1]) == pytest.approx([1 / (1 + math.e), math.e / (1 + math.e)])


def host_of_this_process() -> int:
    return next(
        pid
        for pid in children_of(os.getpid())
        if b"mtmc_engine.planner.host.serve" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )


async def test_after_two_deaths_of_the_host_the_roofline_goes_on_alone(tiny_gguf):
    notices: list[str] = []
    state = state_of(pointwise_and_softmax())
    legal = legal_of(state)
    model = LlamaPlanner(tiny_gguf, threads=2)
    planner = MixedPlanner(model, RooflinePlanner(), 0.5, notices.append)
    assert planner.name == "llama:tiny.gguf 0.5 + roofline 0.5"
    for _ in range(2):
        both = await planner.propose(state, legal)
        assert set(both[0].parts) == {"llama", "roofline"}
        assert notices == []
        os.kill(host_of_this_process(), signal.SIGKILL)
    alone = await planner.propose(state, legal)
    await planner.propose(state, legal)
    await planner.close()
    assert alone == await RooflinePlanner().propose(state, legal)
    assert planner.name == "roofline"
    assert len(notices) == 1
    assert notices[0].endswith("The roofline planner goes on alone.")


@pytest.mark.slow
@pytest.mark.parametrize("task", [linear_relu_softmax(), pointwise_and_softmax()])
async def test_an_untrained_model_does_not_ruin_the_plan(bundled_gguf, task):
    """The default mixture reaches at least the speed that the roofline planner alone reaches."""

    async def plan_us(planner) -> float:
        state = state_of(task)
        for step in range(1, 9):
            numbered = replace(state, step=step)
            best = (await planner.propose(numbered, legal_of(state)))[0].action
            if best.kind == "stop":
                break
            state = state_of(task, apply_action(task, state.schedule, best))
        await planner.close()
        return state.time_us

    roofline_us = await plan_us(RooflinePlanner())
    assert await plan_us(make_planner("llama")) <= roofline_us * 1.02


# -- by name ---------------------------------------------------------------------------------


def test_planners_by_name(tiny_gguf):
    assert make_planner("roofline").name == "roofline"
    assert make_planner("uniform").name == "uniform"
    assert make_planner(f"llama:{tiny_gguf}").name == "llama:tiny.gguf 0.2 + roofline 0.8"
    assert make_planner(f"llama:{tiny_gguf}", mix=1).name == "llama:tiny.gguf"


def test_auto_and_llama_take_the_bundled_model(bundled_gguf):
    notices: list[str] = []
    for spec in ("auto", "llama"):
        planner = make_planner(spec, notify=notices.append)
        assert planner.name.startswith("llama:SmolLM2-135M-Instruct.Q4_1.gguf 0.2 + roofline")
    assert notices == []


BARE = """
import sys
sys.path[:] = [path for path in sys.path if "-packages" not in path] + sys.argv[1:]
from mtmc_engine.planner.make import make_planner
print(make_planner("auto", notify=print).name)
try:
    make_planner("llama")
except Exception as error:
    print(type(error).__name__, error)
"""


def test_without_llama_cpp_auto_is_roofline_and_llama_is_an_error(tmp_path):
    """In an interpreter that finds no installed package but msgspec."""
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    root_folder = Path(make.__file__).parents[2]
    bare = subprocess.run(
        [sys.executable, "-S", "-P", "-c", BARE, root_folder, tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert bare.stdout.splitlines() == [
        "llama.cpp is not installed: pip install llama-cpp-python. "
        "The roofline planner decides alone.",
        "roofline",
        "UsageError llama.cpp is not installed: pip install llama-cpp-python.",
    ]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("roofllne", "did you mean 'roofline'"),
        ("lama:x.gguf", "did you mean 'llama'"),
        ("", "no planner ''"),
        ("roofline:x", "no planner 'roofline:x'"),
    ],
)
def test_an_unknown_planner_names_the_nearest(spec, sentence):
    with pytest.raises(UsageError, match=sentence):
        make_planner(spec)


def test_a_bad_model_file_is_refused_before_it_is_loaded(tmp_path, tiny_gguf):
    pointer = tmp_path / "pointer.gguf"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny_gguf.read_bytes()[:100_000])
    for path in (pointer, cut, tmp_path, tmp_path / "missing.gguf"):
        with pytest.raises(UsageError):
            make_planner(f"llama:{path}")


def test_a_mix_outside_nought_to_one_is_refused():
    with pytest.raises(UsageError, match="from 0 to 1"):
        make_planner("roofline", mix=1.5)

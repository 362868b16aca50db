"""Rewritten programs run for real under the interpreter and agree with torch in float64."""

import pytest
import pytest_asyncio

from mtmc_engine.schedule.legal import apply_action, parse_phrase
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.system.jobs import Ending, Limits
from tests.schedule.family_runs import agrees, captured
from tests.schedule.rewriting_cases import CASES
from tests.schedule.test_render_golden import matches

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tasks(workshop, tmp_path_factory):
    """Tasks of all cases by name."""
    sources = {name: source for name, (source, *_) in CASES.items()}
    return await captured(workshop, tmp_path_factory.mktemp("rewritings"), sources)


def after(task, phrases):
    schedule = root(task.graph)
    for phrase in phrases:
        schedule = apply_action(task, schedule, parse_phrase(task, schedule, phrase))
    return schedule


@pytest.mark.parametrize("name", CASES)
async def test_a_rewritten_program_calls_less_and_agrees(name, tasks, workshop):
    _, phrases, present, absent = CASES[name]
    schedule = after(tasks[name], phrases)
    source = render(tasks[name], schedule)
    forward = source[source.index("def forward") :]
    assert all(word in source for word in present), source
    assert not any(word in forward for word in absent), source
    await agrees(workshop, tasks[name], schedule, ("contiguous", "transposed"))


async def test_the_folded_norm_is_golden(tasks):
    task = tasks["norm_into_convolution"]
    matches("norm_folded", render(task, after(task, ["simplify r1", "lower r3"])))


async def test_the_channels_last_chain_is_golden(tasks):
    name = "channels_last_and_kernels"
    matches("channels_last", render(tasks[name], after(tasks[name], CASES[name][1])))


@pytest.mark.parametrize("change", ["in_place", "loaded", "another_parameter", "wider"])
async def test_what_is_prepared_follows_its_parameters(change, tasks, workshop):
    """Whatever way a parameter changes after a call, the next call sees it."""
    task = tasks["norm_into_convolution"]
    source = render(task, after(task, ["simplify r1"]))
    arguments = {"file": task.file, "source": source, "change": change}
    result = await workshop.interpret.run(
        "tests.schedule.prepared_jobs:followed", arguments, Limits(wall_s=60)
    )
    assert result.ending is Ending.DONE, result.traceback
    assert result.value["moved"] > 1e-3
    assert result.value["error"] < 1e-5
    assert result.value["kept"]

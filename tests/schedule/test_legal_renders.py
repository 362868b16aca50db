"""Whatever step is offered can be written: every legal action applies and renders."""

from pathlib import Path

import msgspec
import pytest

from mtmc_engine.core.task import Task
from mtmc_engine.schedule.legal import apply_action, legal_actions
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.system.jobs import Ending, Limits

pytestmark = pytest.mark.asyncio(loop_scope="session")
SAMPLES = Path(__file__).parents[2] / "samples"
FILES = sorted(SAMPLES.glob("*.py"))
SUITE = sorted((SAMPLES / "suite").rglob("*.py"))
JOBS = "tests.schedule.render_jobs"


async def opened(workshop, file):
    """The task of a file as its export gives it; None where the file is no task."""
    arguments = {"files": [str(file)]}
    result = await workshop.device.run(f"{JOBS}:capture", arguments, Limits(wall_s=120))
    if result.ending is not Ending.DONE:
        return None
    return msgspec.convert(result.value[str(file)], Task)


def steps(task, schedule):
    return [a for a in legal_actions(task, schedule, task.device) if a.kind != "stop"]


def renders(task, schedule):
    """Programs one step on from this one, by phrase; each of them is Python."""
    found = {}
    for action in steps(task, schedule):
        changed = apply_action(task, schedule, action)
        compile(render(task, changed), action.phrase, "exec")
        found[action.phrase] = changed
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_every_legal_step_of_a_sample_renders_and_every_one_after_it(file, workshop):
    task = await opened(workshop, file)
    assert task is not None
    first = renders(task, root(task.graph))
    for schedule in first.values():
        renders(task, schedule)


@pytest.mark.slow
@pytest.mark.parametrize("file", SUITE, ids=lambda file: file.stem)
async def test_every_legal_step_of_a_suite_task_renders_and_every_one_after_it(file, workshop):
    task = await opened(workshop, file)
    if task is None:
        pytest.skip("no task by itself")
    for schedule in renders(task, root(task.graph)).values():
        renders(task, schedule)

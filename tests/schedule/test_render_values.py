"""Rendered programs run for real under the interpreter and agree with torch in float64."""

import msgspec
import pytest
import pytest_asyncio

from mtmc_engine.core.program import Group, Library, Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.templates import lowering
from mtmc_engine.system.jobs import Ending, Limits, Workshop
from tests.schedule.render_cases import CASES

pytestmark = pytest.mark.asyncio(loop_scope="session")
JOBS = "tests.schedule.render_jobs"
# Groups of these cases that may stay library calls.
KEPT = {
    "losses": {"aten.broadcast_tensors.default", "getitem"},
    "views": {"aten.chunk.default", "aten.split.Tensor"},
    "itself_transposed": {"aten.add.Tensor", "getitem"},
    "batch_norm_training": {
        "aten._native_batch_norm_legit_functional.default",
        "aten.add.Tensor",
        "getitem",
    },
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def workshop():
    workshop = Workshop()
    await workshop.start()
    yield workshop
    await workshop.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tasks(workshop, tmp_path_factory):
    """Tasks of all cases by name."""
    folder = tmp_path_factory.mktemp("cases")
    files = {}
    for name, source in CASES.items():
        files[name] = folder / f"case_{name}.py"
        files[name].write_text(source)
    result = await workshop.device.run(
        f"{JOBS}:capture", {"files": [str(f) for f in files.values()]}, Limits(wall_s=240)
    )
    assert result.ending is Ending.DONE, result.traceback
    return {name: msgspec.convert(result.value[str(file)], Task) for name, file in files.items()}


def lowered(task):
    """Every group that has a template in that template."""
    groups = []
    for group in root(task.graph).groups:
        form = lowering(task.graph, group.nodes, task.device) if group.region else None
        groups.append(Group(group.region, group.nodes, form or Library()))
    return Schedule(tuple(groups))


async def agrees(workshop, task, schedule, layouts=("contiguous",)):
    """Runs the program and asserts that every output is within its bound."""
    source = render(task, schedule)
    arguments = {"file": task.file, "source": source, "layouts": list(layouts)}
    result = await workshop.interpret.run(f"{JOBS}:run", arguments, Limits(wall_s=120))
    assert result.ending is Ending.DONE, f"{source}\n{result.traceback}\n{result.output}"
    for output in result.value:
        assert output["error"] <= output["bound"], f"{source}\n{output}"


@pytest.mark.parametrize("case", CASES)
async def test_lowered_program_agrees_with_torch(case, tasks, workshop):
    task = tasks[case]
    schedule = lowered(task)
    kept = {
        task.graph.node(name).op
        for group in schedule.groups
        if group.region and isinstance(group.form, Library)
        for name in group.nodes
    }
    assert kept <= KEPT.get(case, set())
    await agrees(workshop, task, schedule, ("contiguous", "transposed", "sliced"))


@pytest.mark.parametrize("case", CASES)
async def test_root_program_agrees_with_torch(case, tasks, workshop):
    await agrees(workshop, tasks[case], root(tasks[case].graph))

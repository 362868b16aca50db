"""Every operator family, rendered, runs under the interpreter and agrees with torch."""

import pytest
import pytest_asyncio

from mtmc_engine.core.program import Group, Library, Schedule, Templated
from mtmc_engine.schedule.regions import root, schedule_of
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.templates import lowering
from mtmc_engine.system.jobs import Ending, Limits
from tests.schedule.family_cases import CASES, FUSED, SCANS
from tests.schedule.family_runs import JOBS, agrees, captured, lowered

pytestmark = pytest.mark.asyncio(loop_scope="session")
# Operators of these cases that stay library calls.
KEPT = {
    "constants": {"aten.ones_like.default", "aten.sum.dim_IntList"},
    "class_losses": {"aten.div.Tensor"},
}
ROW_FORMS = {
    "tile": ("rows", {"rows_per_program": 4, "warps": 4}),
    "loop": ("rows_loop", {"block_cols": 32, "rows_per_program": 16, "form": "multi_pass"}),
}
ROW_CASES = [*SCANS, "positions", "products", "apart", "batch_norm_training", "class_losses"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tasks(workshop, tmp_path_factory):
    """Tasks of all cases by name."""
    return await captured(workshop, tmp_path_factory.mktemp("families"), {**CASES, **FUSED})


@pytest.mark.parametrize("case", CASES)
async def test_family_agrees_with_torch(case, tasks, workshop):
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


@pytest.mark.parametrize("case", FUSED)
async def test_chain_is_one_kernel(case, tasks, workshop):
    task = tasks[case]
    nodes = tuple(node.name for node in task.graph.nodes if node.out)
    named = tuple(n for group in root(task.graph).groups if group.region for n in group.nodes)
    nodes = tuple(name for name in nodes if name in named)
    form = lowering(task.graph, nodes, task.device)
    assert form is not None
    schedule = schedule_of(task.graph, [Group("r1", nodes, form)])
    await agrees(workshop, task, schedule, ("contiguous", "transposed"))


@pytest.mark.parametrize("form", ROW_FORMS)
@pytest.mark.parametrize("case", ROW_CASES)
async def test_row_forms_agree_with_torch(case, form, tasks, workshop):
    template, params = ROW_FORMS[form]
    groups = [
        Group(group.region, group.nodes, Templated(template, {"warps": 4, **params}))
        if isinstance(group.form, Templated) and group.form.template.startswith("rows")
        else group
        for group in lowered(tasks[case]).groups
    ]
    await agrees(workshop, tasks[case], Schedule(tuple(groups)))


@pytest.mark.parametrize("case", ["joins", "repeats", "volume_pool", "scans", "products"])
async def test_empty_inputs_agree_with_torch(case, tasks, workshop):
    await agrees(workshop, tasks[case], lowered(tasks[case]), ("empty",))


@pytest.mark.slow
@pytest.mark.parametrize("case", [*CASES, *FUSED])
async def test_family_compiles_for_sm_90(case, tasks, workshop):
    task = tasks[case]
    arguments = {"file": task.file, "source": render(task, lowered(task))}
    result = await workshop.device.run(f"{JOBS}:compile_ahead", arguments, Limits(wall_s=280))
    assert result.ending is Ending.DONE, f"{arguments['source']}\n{result.error}\n{result.output}"
    assert all(launch["spill_bytes"] == 0 for launch in result.value["launches"])

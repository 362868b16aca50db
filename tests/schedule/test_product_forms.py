"""Other forms of matrix products: shared, persistent, tuned, three passes of TF32."""

import pytest
import pytest_asyncio

from mtmc_engine.core.program import Group, Schedule, Templated
from mtmc_engine.schedule.render import render
from mtmc_engine.system.jobs import Ending, Limits
from tests.schedule.family_runs import JOBS, agrees, captured, lowered
from tests.schedule.render_cases import CASES

pytestmark = pytest.mark.asyncio(loop_scope="session")
SMALL = {"block_m": 16, "block_n": 16, "block_k": 16, "warps": 4, "stages": 2}
FORMS = {
    "splits": {"splits": 3},
    "persist": {"persist": 2},
    "tf32x3": {"dot": "tf32x3"},
    "order": {"group_m": 1},
    "autotune": {"autotune": True},
    "persist_order": {"persist": 3, "group_m": 2},
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tasks(workshop, tmp_path_factory):
    cases = {name: CASES[name] for name in ("linear", "linear_3d", "batched", "linear_half")}
    return await captured(workshop, tmp_path_factory.mktemp("products"), cases)


def formed(task, changes):
    """Every product with these parameters."""
    return Schedule(
        tuple(
            Group(group.region, group.nodes, group.form.with_params(**changes))
            if isinstance(group.form, Templated) and group.form.template == "matmul"
            else group
            for group in lowered(task).groups
        )
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ["linear", "linear_3d", "linear_half"])
async def test_form_agrees_with_torch(case, form, tasks, workshop):
    schedule = formed(tasks[case], {**SMALL, **FORMS[form]})
    await agrees(workshop, tasks[case], schedule, ("contiguous", "transposed", "sliced"))


@pytest.mark.parametrize("form", ["tf32x3", "order", "autotune"])
async def test_batched_form_agrees_with_torch(form, tasks, workshop):
    await agrees(workshop, tasks["batched"], formed(tasks["batched"], {**SMALL, **FORMS[form]}))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ["linear", "linear_half"])
async def test_form_compiles_for_sm_90(case, form, tasks, workshop):
    task = tasks[case]
    arguments = {"file": task.file, "source": render(task, formed(task, FORMS[form]))}
    result = await workshop.device.run(f"{JOBS}:compile_ahead", arguments, Limits(wall_s=280))
    assert result.ending is Ending.DONE, f"{arguments['source']}\n{result.error}\n{result.output}"
    assert all(not launch["error"] for launch in result.value["launches"])

"""Kernels of the families as the suite's tasks render them, kept in golden/.

MTMC_UPDATE_GOLDEN=1 writes them anew.
"""

import pytest
import pytest_asyncio

from mtmc_engine.core.program import Group
from mtmc_engine.schedule.regions import root, schedule_of
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.templates import lowering, variants
from mtmc_engine.system.jobs import Workshop
from tests.schedule.family_runs import captured_files
from tests.schedule.test_render_golden import SAMPLES, fused, matches

pytestmark = pytest.mark.asyncio(loop_scope="session")
# Task and the kind of step that changes its lowered form.
GOLDENS = {
    "scan_max_pool": "",
    "scan_running_sum": "",
    "scan_returns": "",
    "pointwise_rotary": "",
    "reduce_best_class": "",
    "reduce_smoothed_entropy": "",
    "norm_batch_training": "split",
    "matmul_deep": "split",
    "matmul_square": "persist",
    "matmul_irregular": "autotune",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tasks():
    workshop = Workshop()
    files = {name: str(SAMPLES / "suite" / f"{name}.py") for name in GOLDENS}
    found = await captured_files(workshop, files)
    await workshop.close()
    return found


def changed(task, kind):
    """The task's last region in its first variant of a kind."""
    region = [group for group in root(task.graph).groups if group.region][-1]
    form = lowering(task.graph, region.nodes, task.device)
    params = variants(task.graph, region.nodes, form, task.device)[kind][0]
    template = params.pop("template", None)
    form = type(form)(template, params) if template else form.with_params(**params)
    return schedule_of(task.graph, [Group(region.region, region.nodes, form)])


@pytest.mark.parametrize("name", GOLDENS)
async def test_family_program_is_golden(name, tasks):
    kind = GOLDENS[name]
    schedule = changed(tasks[name], kind) if kind else fused(tasks[name])
    matches(f"{name}_{kind}" if kind else name, render(tasks[name], schedule))

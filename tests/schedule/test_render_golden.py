"""The kernels of the samples, kept in golden/ and reviewed like source.

MTMC_UPDATE_GOLDEN=1 writes them anew.
"""

import os
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from mtmc_engine.core.program import Group, Library
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.regions import root, schedule_of
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.templates import lowering, variants
from mtmc_engine.system.jobs import Ending, Limits

pytestmark = pytest.mark.asyncio(loop_scope="session")
GOLDEN = Path(__file__).parent / "golden"
SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = """cross_entropy gelu l2_normalise layer_norm linear_relu_sum mlp residual_norm rms_norm
softmax swiglu"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def samples(workshop):
    """Tasks of the samples by name."""
    files = {name: str(SAMPLES / f"{name}.py") for name in NAMES.split()}
    result = await workshop.device.run(
        "tests.schedule.render_jobs:capture", {"files": list(files.values())}, Limits(wall_s=120)
    )
    assert result.ending is Ending.DONE, result.traceback
    return {name: msgspec.convert(result.value[file], Task) for name, file in files.items()}


def fused(task):
    """Neighbouring regions joined as long as a template takes them, all of them lowered."""
    groups: list[Group] = []
    for region in (group for group in root(task.graph).groups if group.region):
        joined = (*groups[-1].nodes, *region.nodes) if groups else ()
        names = tuple(node.name for node in task.graph.nodes if node.name in joined)
        if joined and lowering(task.graph, names, task.device):
            groups[-1] = Group(groups[-1].region, names, Library())
        else:
            groups.append(region)
    return schedule_of(
        task.graph,
        [Group(g.region, g.nodes, lowering(task.graph, g.nodes, task.device)) for g in groups],
    )


def in_one_pass(task):
    """The fused program with its row statistics in one sweep."""
    groups = []
    for group in fused(task).groups:
        changes = variants(task.graph, group.nodes, group.form, task.device).get("one_pass", ({},))
        groups.append(Group(group.region, group.nodes, group.form.with_params(**changes[0])))
    return schedule_of(task.graph, groups)


def matches(name, source):
    path = GOLDEN / f"{name}.py"
    if os.environ.get("MTMC_UPDATE_GOLDEN"):
        path.write_text(source)
    assert path.read_text() == source


@pytest.mark.parametrize("name", NAMES.split())
async def test_fused_program_is_golden(name, samples):
    matches(name, render(samples[name], fused(samples[name])))


@pytest.mark.parametrize("name", ["cross_entropy", "layer_norm"])
async def test_one_pass_program_is_golden(name, samples):
    matches(f"{name}_one_pass", render(samples[name], in_one_pass(samples[name])))


@pytest.mark.parametrize("name", ["mlp", "layer_norm"])
async def test_root_program_is_golden(name, samples):
    matches(f"{name}_root", render(samples[name], root(samples[name].graph)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES.split())
@pytest.mark.parametrize("scheduled", [fused, in_one_pass])
async def test_kernels_of_samples_compile_for_sm_90(name, scheduled, samples, workshop):
    task = samples[name]
    arguments = {"file": task.file, "source": render(task, scheduled(task))}
    result = await workshop.device.run(
        "tests.schedule.render_jobs:compile_ahead", arguments, Limits(wall_s=280)
    )
    assert result.ending is Ending.DONE, f"{arguments['source']}\n{result.error}\n{result.output}"
    assert all(launch["spill_bytes"] == 0 for launch in result.value["launches"])

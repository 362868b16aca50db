"""Rewritten programs before the real judge: each kind of step is proven from end to end."""

import msgspec
import pytest

from mtmc_engine.capture.client import task_of
from mtmc_engine.proof.prove import Subject, prove
from mtmc_engine.schedule.legal import apply_action, parse_phrase
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.system.devices import card
from tests.schedule.rewriting_cases import CASES

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]
JUDGED = """norm_into_convolution sum_and_rows_of_one two_layers_as_one bias_into_activation
half_norm_into_linear channels_last channels_last_and_kernels"""


async def verdict(workshop, folder, name, broken=("", "")):
    """The judgement of a case's program; broken: a text of it and what takes its place."""
    source, phrases, *_ = CASES[name]
    file = folder / f"case_{name}.py"
    file.write_text(source)
    job = {"file": str(file), "seed": 0, "target_card": msgspec.to_builtins(card("sm_90"))}
    task = task_of(await workshop.device.run("mtmc_engine.capture.worker:open_task", job))
    schedule = root(task.graph)
    for phrase in phrases:
        schedule = apply_action(task, schedule, parse_phrase(task, schedule, phrase))
    program = render(task, schedule)
    assert broken[0] in program
    subject = Subject(
        task=task,
        source=program.replace(*broken) if broken[0] else program,
        name="candidate",
        folder=str(folder / "scratch"),
        schedule=schedule,
    )
    return await prove(subject, workshop, lambda progress: None)


@pytest.mark.parametrize("name", JUDGED.split())
async def test_a_rewritten_program_is_proven(name, workshop, tmp_path):
    judged = await verdict(workshop, tmp_path, name)
    assert judged.proven, judged.reason
    assert not any(
        "strides" in warning for warning in judged.warnings if "transposed" not in warning
    )


@pytest.mark.parametrize(
    "broken",
    [("conv.bias * scale", "conv.bias * 1"), ("running_var + 1e-05", "running_var * 0 + 1")],
    ids=["shift", "variance"],
)
async def test_a_fold_that_forgets_a_factor_is_not(broken, workshop, tmp_path):
    judged = await verdict(workshop, tmp_path, "norm_into_convolution", broken)
    assert judged.verdict.value == "NUMERIC"

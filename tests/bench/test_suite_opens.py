"""Every task of the suite can be opened, here without a GPU."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from mtmc_engine.bench.opened import CAPTURE
from mtmc_engine.capture.client import task_of
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.system.devices import cards
from mtmc_engine.system.jobs import Limits, Workshop

SUITE = Path(__file__).resolve().parents[2] / "samples" / "suite"
MOST_BYTES = 4 << 30
# One of each family, and those that have more than one kind of input.
QUICK = (
    "chain_conv_upsample",
    "matmul_few_rows",
    "net_policy",
    "norm_masked_softmax",
    "pointwise_quantise",
    "reduce_best_class",
    "scan_returns",
)


async def check(names):
    """Opens the files, two at a time, and renders the original of each."""
    workshop, places = Workshop(), asyncio.Semaphore(2)

    async def one(name):
        arguments = {
            "file": str(SUITE / f"{name}.py"),
            "overrides": {"precision": "tf32"},
            "seed": 0,
            "target_card": msgspec.to_builtins(cards()["sm_90"]),
        }
        async with places:
            task = task_of(await workshop.device.run(CAPTURE, arguments, Limits(wall_s=120)))
        assert task.graph.captured, name
        assert not task.random, name
        assert not any("does not depend" in note for note in task.notes), name
        assert sum(value.spec.nbytes for value in task.graph.inputs) <= MOST_BYTES, name
        assert "ModelNew" in (text := render(task, root(task.graph))) or task.entry in text

    try:
        await asyncio.gather(*map(one, names))
    finally:
        await workshop.close()


@pytest.mark.slow
async def test_one_of_each_family_opens():
    await check(QUICK)


@pytest.mark.soak
async def test_all_of_the_suite_opens():
    await check(sorted(path.stem for path in SUITE.glob("*.py")))

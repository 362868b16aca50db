"""The timer for a GPU in this machine: its worker runs in a disposable child."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.proof import explain
from mtmc_engine.proof.subject import Bounds
from mtmc_engine.proof.timing.timer import Contest, Timed
from mtmc_engine.proof.work_names import TIME
from mtmc_engine.system.jobs import Ending, Limits, Workshop


class GpuTimer:
    """Times in a child of the device parent."""

    def __init__(self, workshop: Workshop, bounds: Bounds) -> None:
        self.workshop, self.bounds = workshop, bounds

    async def time(self, contest: Contest, tell: Callable[[int, int, str], None]) -> Timed:
        def heard(value: Any) -> None:
            tell(value["done"], value["total"], value["doing"])

        limits = Limits(wall_s=self.bounds.timing_s, memory_mb=4 * self.bounds.memory_mb)
        arguments = msgspec.to_builtins(contest)
        result = await self.workshop.device.run(TIME, arguments, limits, heard)
        if result.ending is Ending.DONE:
            return msgspec.convert(result.value, Timed)
        if result.failure:
            result.unwrap()  # the reference's own error
        verdict, sentence = explain.ending(result, "being timed")
        return Timed((), failed=f"{verdict}: {sentence}")


def lock_file() -> str:
    """One per device: two timings at once would disturb each other."""
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    return str(Path(tempfile.gettempdir()) / f"mtmc-gpu-{device.replace('/', '_')}.lock")

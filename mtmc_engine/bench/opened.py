"""Opening a task: capture, then all compilation that needs no measurement."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mtmc_engine.bench.ahead import Ahead
from mtmc_engine.bench.setting import Bench
from mtmc_engine.bench.tasks import BenchTask
from mtmc_engine.capture.client import task_of
from mtmc_engine.core.task import Task
from mtmc_engine.proof.prove import Subject
from mtmc_engine.schedule.original import original_program
from mtmc_engine.system.jobs import Workshop

CAPTURE = "mtmc_engine.capture.worker:open_task"
WARM = "mtmc_engine.bench.warm:compile_reference"


@dataclass(frozen=True)
class Opened:
    """A task that can be walked.

    phases: wall seconds so far. seconds: of opening it.
    """

    bench_task: BenchTask
    task: Task
    folder: Path
    ahead: Ahead
    phases: dict[str, float]
    seconds: float


async def opened(
    bench: Bench,
    bench_task: BenchTask,
    folder: Path,
    workshop: Workshop,
) -> Opened:
    """Opens a file and compiles ahead. Raises UsageError or ReferenceFailed."""
    began = time.monotonic()
    limits = bench.config.limits
    arguments = {
        "file": str(bench_task.file),
        "overrides": {"precision": bench.options.precision},
        "seed": bench.options.seed,
        "target_card": msgspec.to_builtins(bench.device),
    }
    result = await workshop.device.run(CAPTURE, arguments, limits.of(limits.capture_s))
    task = task_of(result)
    captured = time.monotonic()
    ahead = Ahead(bench, task, folder, workshop)
    if not task.random:
        await asyncio.gather(*_preparing(bench, task, folder, workshop, ahead))
    done = time.monotonic()
    phases = {"capture": captured - began, "compile ahead": done - captured}
    return Opened(bench_task, task, folder, ahead, phases, done - began)


def _preparing(
    bench: Bench, task: Task, folder: Path, workshop: Workshop, ahead: Ahead
) -> list[asyncio.Future[None]]:
    found: list[asyncio.Future[None]] = [asyncio.ensure_future(ahead.foresee())]
    if task.device.present:
        found.append(asyncio.ensure_future(_warm(bench, task, folder, workshop)))
    return found


async def _warm(bench: Bench, task: Task, folder: Path, workshop: Workshop) -> None:
    """torch.compile's kernels; where it fails, timing will say so."""
    source = original_program(task).source
    subject = Subject(task, source, "n0", str(folder), seed=bench.options.seed)
    arguments = {"build": msgspec.to_builtins(subject.build(subject.device))}
    cache = subject.compiler_cache
    cache.mkdir(parents=True, exist_ok=True)
    limits = bench.config.limits
    await workshop.device.run(WARM, arguments, limits.of(limits.timing_s), cache=cache)

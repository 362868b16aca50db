"""Opening the user's file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.capture.client import task_of
from mtmc_engine.capture.source import source_text
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.events import TaskOpened
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.original import original_schedule
from mtmc_engine.schedule.regions import regions_in
from mtmc_engine.system.config import StageLimits
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Workshop


async def target_card(target: str) -> DeviceCard:
    """The card to compile for. Raises UsageError for an unknown target."""
    return await asyncio.to_thread(card, target)


async def open_task(
    file: str,
    device: DeviceCard,
    seed: int,
    workshop: Workshop,
    limits: StageLimits,
    *,
    reference: str = "",
) -> Task:
    """The task of the user's file. Raises UsageError or ReferenceFailed.

    reference: "NAME" or "FILE:NAME" of what the operator should compute; "": what the file says.
    """
    arguments: dict[str, Any] = {
        "file": str(Path(file).absolute()),
        "reference": _found_from_here(reference) or None,
        "overrides": {},
        "seed": seed,
        "target_card": msgspec.to_builtins(device),
    }
    function = "mtmc_engine.capture.worker:open_task"
    bounds = limits.of(limits.capture_s)
    return task_of(await workshop.device.run(function, arguments, bounds))


def _found_from_here(reference: str) -> str:
    """The path in "FILE:NAME" made absolute."""
    path, colon, name = reference.partition(":")
    return f"{Path(path).expanduser().absolute()}:{name}" if colon else reference


def task_event(task: Task, *, replayed: bool = False) -> TaskOpened:
    """The event that tells what was understood. replayed: its times come from a recording."""
    shapes = tuple(item.label for item in task.inputs)
    dtypes = dict.fromkeys(spec.dtype for item in task.inputs for spec in item.tensors)
    return TaskOpened(
        task=task.name,
        entry=task.entry,
        shapes=shapes,
        dtypes=tuple(dtypes),
        device=task.device.name,
        measured=task.device.present and not replayed,
        captured=task.graph.captured,
        regions=regions_in(task.graph, original_schedule(task)),
        source=source_text(Path(task.file)),
        notes=task.notes,
        instead="replayed" if replayed else "none" if task.program else "estimated",
    )

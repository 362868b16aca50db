"""The user's file against the task that was opened from it: proof must not mix the two."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mtmc_engine.capture.source import source_text, text_digest
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.task import Task
from mtmc_engine.session.requests import serve
from mtmc_engine.session.run import Run

# An editor that saves by renaming leaves the file missing for a moment.
PATIENCE_S = 0.5


def content_digest(path: Path) -> str:
    """SHA-256 of a file's text as a task has it; "" for a file that cannot be read."""
    try:
        return text_digest(source_text(path))
    except UsageError:
        return ""


class Stale(Exception):
    """The user's file is not what the task was opened from."""


async def check_fresh(task: Task) -> None:
    """Raises Stale where the user's file changed or is gone."""
    path = Path(task.file)
    if not path.exists():
        await asyncio.sleep(PATIENCE_S)
    if content_digest(path) != task.digest:
        raise Stale


async def wait_for_replay(run: Run) -> None:
    """Wait until the user replays the plan or restores the file.

    Raises ReplayAsked, Stopped, and UsageError where nobody is asked.
    """
    name = Path(run.task.file).name
    text = f"{name} changed since it was opened: replay the plan on the new source, or restore it."
    if run.follows_policy:
        raise UsageError(f"{text} Nothing more is proven until then.")
    run.outlet.warn(text)
    run.outlet.phase("wait", "replay")
    serve(run, await run.inbox.next())

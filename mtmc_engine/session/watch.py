"""Watching the user's file: tells when its content changes, however it is saved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from mtmc_engine.session.stale import content_digest

# An editor that saves by renaming leaves the file missing for a moment.
SETTLE_S = 0.15


async def changes(file: Path, digest: str) -> AsyncIterator[str]:
    """SHA-256 of each new content of `file`, as it appears on disk.

    digest: the content that is known; a save that leaves it as it is says nothing. Watches the
    folder, since a watched file goes deaf after the first atomic save, and looks every 5 s
    anyway, since some file systems tell of nothing. A file that is deleted says nothing until it
    is there again.
    """
    from watchfiles import awatch

    path = file.resolve()

    def is_ours(change: object, name: str) -> bool:
        return Path(name).name == path.name

    changed = awatch(
        path.parent, watch_filter=is_ours, recursive=False, debounce=400, yield_on_timeout=True
    )
    while True:
        found = content_digest(path)
        if found and found != digest:
            digest = found
            yield found
        await anext(changed)
        await asyncio.sleep(SETTLE_S)

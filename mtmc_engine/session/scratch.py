"""Scratch space of a session, freed also after a run that was killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "mtmc-session-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder, removed at the end; those of runs that were killed are removed now."""
    remove_left_over(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as folder:
        yield Path(folder)


def remove_left_over(place: Path) -> None:
    """Remove our folders in `place` whose process is gone."""
    for folder in place.glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists() and _is_ours(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    try:
        return folder.lstat().st_uid == os.getuid()
    except OSError:
        return False

"""Scratch space, freed also after a run that was killed."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "mtmc-scratch-"
# Of the folder in which a warm parent has the private folders of its jobs.
JOBS_PREFIX = "mtmc-jobs-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder, removed at the end; those of runs that were killed are removed now."""
    remove_left_over(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_ours()) as folder:
        yield Path(folder)


def scratch_of(owner: object) -> Path:
    """A private folder that is removed with its owner, at the latest as this process ends."""
    folder = tempfile.mkdtemp(prefix=_ours())
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _ours() -> str:
    return f"{PREFIX}{os.getpid()}-"


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

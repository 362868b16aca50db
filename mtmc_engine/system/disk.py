"""What a job has on the disk."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_MOST_ENTRIES = 200_000


def bytes_below(place: Path, limit: int) -> int:
    """Bytes that a file, or all files below a folder, take; counting stops above `limit`.

    More entries than anyone needs count as more than `limit`.
    """
    total = entries = 0
    folders = [str(place)]
    if not place.is_dir():
        return _blocks(place.lstat()) if place.exists() else 0
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as found:
            for entry in found:
                entries += 1
                with suppress(OSError):
                    total += _blocks(entry.stat(follow_symlinks=False))
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                if total > limit or entries > _MOST_ENTRIES:
                    return limit + 1
    return total


def unlinked_bytes(processes: list[int]) -> int:
    """Bytes of files without a name, on disk or in memory, that processes hold open."""
    found: dict[tuple[int, int], int] = {}
    for pid in processes:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    facts = os.stat(entry.path)
                    if facts.st_nlink == 0 and stat.S_ISREG(facts.st_mode):
                        found[facts.st_dev, facts.st_ino] = _blocks(facts)
    return sum(found.values())


def _blocks(facts: os.stat_result) -> int:
    return facts.st_blocks * 512


def free_share(place: Path) -> float:
    """Share of the file system that holds `place` which is free, 0 to 1."""
    try:
        facts = os.statvfs(place)
    except OSError:
        return 1.0
    return facts.f_bavail / facts.f_blocks if facts.f_blocks else 1.0


def tidy(folder: Path) -> Path:
    """Leave nothing below a folder but ordinary files and folders that can be removed.

    Whoever reads there next must meet no link to elsewhere and no pipe that never ends.
    """
    folders = [str(folder)]
    while folders:
        here = folders.pop()
        with suppress(OSError):
            os.chmod(here, 0o700)
            for entry in list(os.scandir(here)):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    os.unlink(entry.path)
    return folder

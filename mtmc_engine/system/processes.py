"""The child processes of one job: who they are, what they hold, and their end."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def children_of(pid: int) -> list[int]:
    """Direct children, zombies included; none where the process is gone."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def descendants(pid: int) -> list[int]:
    """All descendants of a process, parents before their children."""
    found = children_of(pid)
    for child in found:  # grows while it is walked
        found += children_of(child)
    return found


def resident_bytes(pids: list[int]) -> int:
    """Sum of the resident sizes; a page that several of them share counts for each."""
    total = 0
    for pid in pids:
        with suppress(OSError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
            total += int(file.read().split()[1]) * _PAGE_BYTES
    return total


def private_bytes(pids: list[int]) -> int:
    """The same with shared pages counted in parts, which is slower; 0 where that is not told."""
    total = 0
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            told = next((line for line in file if line.startswith(b"Pss:")), b"Pss: 0 kB")
            total += int(told.split()[1]) << 10
    return total


class MemoryBound:
    """Tells whether processes use more than `limit` bytes of memory together.

    Forks of one process share most of their pages: what is quickly counted may be too much. The
    exact count may take long, and gets a tenth of the time at most.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count_again = 0.0

    def exceeded(self, pids: list[int]) -> bool:
        began = time.monotonic()
        if resident_bytes(pids) <= self._limit or began < self._count_again:
            return False
        exact = private_bytes(pids) or self._limit + 1
        self._count_again = time.monotonic() + 10 * (time.monotonic() - began)
        return exact > self._limit


def send_signal(process: asyncio.subprocess.Process, number: int) -> None:
    """A signal to a child of this event loop, if it lives.

    `Process.send_signal` polls first and may so take the child's exit status from the loop, which
    then complains and reports 255.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def kill_tree(pid: int) -> None:
    """SIGKILL to a process and all its descendants."""
    for doomed in [pid, *descendants(pid)]:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(doomed, signal.SIGKILL)


def kill_descendants(patience_s: float = 5.0) -> None:
    """Kill and reap all descendants of this process, which must be one that adopts orphans.

    Gives up after `patience_s` on processes that a driver holds in the kernel.
    """
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        for child in children_of(os.getpid()):
            kill_tree(child)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)

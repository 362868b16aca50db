"""What Linux offers for owning child processes: adoption, death signals, memory, namespaces."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from contextlib import suppress

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def adopt_orphans() -> None:
    """Orphaned descendants of this process become its children, even after setsid."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(parent: int, number: signal.Signals) -> None:
    """This process gets signal `number` when its parent, process `parent`, ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def refuse_privileges() -> None:
    """No program started from here gains rights, and no crash writes a core file."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def leave_network() -> bool:
    """Move this single-threaded process into an empty network namespace; False if not permitted.

    Root moves without a user namespace, so that it keeps its rights on files of others.
    """
    if _libc.unshare(_CLONE_NEWNET) == 0:
        return True
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    with suppress(OSError):  # the identity is only looks: without the map files stay ours
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


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

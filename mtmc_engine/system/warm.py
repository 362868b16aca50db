"""The warm parent: a process with torch and Triton imported that forks one child per job.

Started by the engine as `python -P -c … KIND FD`. It runs nothing itself and never touches a GPU,
since a forked child cannot use its parent's CUDA context.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.system.job_wire import Request
from mtmc_engine.system.processes import (
    adopt_orphans,
    children_of,
    end_with_parent,
    kill_descendants,
    kill_tree,
)
from mtmc_engine.system.supervise import supervise, wake_on_signals

# Imported once here instead of in every job. `torch.export` imports its larger half only when it
# is first used, which this module stands for.
_PRELOAD = {
    "device": ("torch", "torch.export._trace", "triton", "triton.language", "triton.compiler"),
    "interpret": ("torch", "triton", "triton.language", "triton.runtime.interpreter"),
}


def main(kind: str, control_fd: int) -> None:
    """Serve jobs that arrive on `control_fd` until its other end closes."""
    end_with_parent(os.getppid(), signal.SIGTERM)
    adopt_orphans()
    control = socket.socket(fileno=control_fd)
    facts = _preload(kind)
    root = _own_folder()
    waker = wake_on_signals()
    control.send(msgspec.json.encode(facts | {"root": str(root)}))
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would unshare the pages of every child
    try:
        _serve(control, waker, root)
    finally:
        kill_descendants()
        shutil.rmtree(root, ignore_errors=True)


def _preload(kind: str) -> dict[str, Any]:
    """Import what jobs need; the versions found."""
    for name in _PRELOAD[kind]:
        importlib.import_module(name)
    torch, triton = sys.modules["torch"], sys.modules["triton"]
    torch.set_num_threads(1)  # before any operation: a forked child hangs in a second thread pool
    return {
        "torch": str(torch.__version__),
        "torch_cuda": torch.version.cuda or "",
        "triton": str(triton.__version__),
        "pid": os.getpid(),
    }


def _own_folder() -> Path:
    """A locked folder for the jobs' files; folders whose owners were all killed are removed.

    The lock is held by this process and its forks, and ends with the last of them.
    """
    for left in Path(tempfile.gettempdir()).glob("mtmc-jobs-*"):
        with suppress(OSError):  # it is in use, or another user's
            lock = _lock(left)
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)
    unnamed = Path(tempfile.mkdtemp(prefix="mtmc-new-"))
    _lock(unnamed)
    return unnamed.rename(unnamed.with_name(unnamed.name.replace("-new-", "-jobs-")))


def _lock(folder: Path) -> int:
    """The descriptor that holds the lock. Raises BlockingIOError where another one does."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _serve(control: socket.socket, waker: int, root: Path) -> None:
    supervisors: set[int] = set()
    while True:
        ready, _, _ = select.select([control.fileno(), waker], [], [])
        if waker in ready:
            if signal.SIGTERM in os.read(waker, 4096):
                return
            _reap(supervisors)
        if control.fileno() in ready:
            header, fds, _, _ = socket.recv_fds(control, 64, 3)
            if not header:
                return
            supervisors.add(_fork_supervisor(control, waker, root, fds))
            for fd in fds:
                os.close(fd)


def _fork_supervisor(control: socket.socket, waker: int, root: Path, fds: list[int]) -> int:
    """fds: write end of the result pipe, the engine's channel, the file with the request."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.close(control.detach())
        os.close(waker)
        result, channel, request = fds
        with open(request, "rb") as file:
            asked = msgspec.json.decode(file.read(), type=Request)
        supervise(asked, result, socket.socket(fileno=channel), root)
    except BaseException:  # an error must not unwind into the parent's frames
        traceback.print_exc()
    finally:
        os._exit(1)


def _reap(supervisors: set[int]) -> None:
    """Bury ended supervisors; kill what one left behind that did not end by itself."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        supervisors.discard(pid)
        if status:
            for stray in set(children_of(os.getpid())) - supervisors:
                kill_tree(stray)

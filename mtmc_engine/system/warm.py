"""The warm parent: a process with torch and Triton imported that forks one child per job.

Started by the engine as `python -P -c … KIND FD`. It runs nothing itself and never touches a GPU,
since a forked child cannot use its parent's CUDA context.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.system.processes import (
    adopt_orphans,
    children_of,
    end_with_parent,
    kill_descendants,
    kill_tree,
)
from mtmc_engine.system.supervise import Request, supervise, wake_on_signals

# Imported once here instead of in every job.
_PRELOAD = {
    "device": ("torch", "torch.export", "triton", "triton.language", "triton.compiler"),
    "interpret": ("torch", "triton", "triton.language", "triton.runtime.interpreter"),
}


def main(kind: str, control_fd: int) -> None:
    """Serve jobs that arrive on `control_fd` until its other end closes."""
    end_with_parent(os.getppid(), signal.SIGTERM)
    adopt_orphans()
    control = socket.socket(fileno=control_fd)
    facts = _preload(kind)
    root = Path(tempfile.mkdtemp(prefix="mtmc-"))
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
    if pid == 0:
        os.close(control.detach())
        os.close(waker)
        result, channel, request = fds
        with open(request, "rb") as file:
            asked = msgspec.json.decode(file.read(), type=Request)
        supervise(asked, result, socket.socket(fileno=channel), root)
    return pid


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

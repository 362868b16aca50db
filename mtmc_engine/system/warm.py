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
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.system import kernel
from mtmc_engine.system.confine import protections_here
from mtmc_engine.system.job_wire import Request
from mtmc_engine.system.processes import children_of, kill_descendants, kill_tree
from mtmc_engine.system.scratch import JOBS_PREFIX
from mtmc_engine.system.supervise import supervise, wake_on_signals

# Imported once here instead of in every job. `torch.export` imports its larger half only when it
# is first used, which this module stands for.
_PRELOAD = {
    "device": ("torch", "torch.export._trace", "triton", "triton.language", "triton.compiler"),
    "interpret": ("torch", "triton", "triton.language", "triton.runtime.interpreter"),
}
# What Triton and torch import when they first compile, launch, or load a file.
_LATER = {
    "device": ("triton.compiler.code_generator", "triton.experimental.gluon"),
    "interpret": ("triton.experimental.gluon", "numpy.random"),
}
_FOR_BOTH = ("torch.utils.serialization.config",)
_OWN = "mtmc_engine."
# Of a folder of jobs before its lock is held.
_NEW_PREFIX = "mtmc-new-"


def main(kind: str, control_fd: int) -> None:
    """Serve jobs that arrive on `control_fd` until its other end closes."""
    kernel.end_with_parent(os.getppid(), signal.SIGTERM)
    kernel.adopt_orphans()
    control = socket.socket(fileno=control_fd)
    facts = _preload(kind)
    root = _own_folder()
    control.send(msgspec.json.encode(facts | {"root": str(root)}))
    gc.collect()
    gc.disable()  # a collection would unshare the pages of every child
    chores = _chores(kind)
    try:
        _Server(control, root, chores).serve()
    finally:
        kill_descendants()
        shutil.rmtree(root, ignore_errors=True)
    os._exit(0)  # taking torch down in order takes longer than everything before


def _preload(kind: str) -> dict[str, Any]:
    """Import what jobs need; the versions found."""
    loaded = {name: importlib.import_module(name) for name in _PRELOAD[kind]}
    facts: dict[str, Any] = {"pid": os.getpid()}
    if torch := loaded.get("torch"):
        torch.set_num_threads(1)  # before any operation: a fork hangs in a second thread pool
        facts |= {"torch": str(torch.__version__), "torch_cuda": torch.version.cuda or ""}
    if triton := loaded.get("triton"):
        facts["triton"] = str(triton.__version__)
    return facts


def _chores(kind: str) -> list[Callable[[], None]]:
    """What makes later jobs quicker, in the order of its use."""
    names = (*_LATER[kind], *_FOR_BOTH)
    chores = [partial(_import_ahead, name) for name in names]
    return [_settle, *chores, *([_hash_compiler] if kind == "device" else []), _settle]


def _import_ahead(name: str) -> None:
    """Import a module that jobs would import; what is wrong with it they will find themselves."""
    with suppress(Exception):
        importlib.import_module(name)


def _hash_compiler() -> None:
    """Triton's digest of its own files, half a second, which every compilation asks for."""
    for name in ("triton.runtime.cache", "triton.compiler.compiler"):
        with suppress(Exception):
            importlib.import_module(name).triton_key()
            return


def _settle() -> None:
    """What was imported lately becomes cheap to fork."""
    gc.freeze()
    kernel.collapse_memory()


def _own_folder() -> Path:
    """A locked folder for the jobs' files; folders whose owners were all killed are removed.

    The lock is held by this process and its forks, and ends with the last of them.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{JOBS_PREFIX}*"):
        with suppress(OSError):  # it is in use, or another user's
            lock = _lock(left)
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)
    unnamed = Path(tempfile.mkdtemp(prefix=_NEW_PREFIX))
    _lock(unnamed)
    return unnamed.rename(unnamed.with_name(unnamed.name.replace(_NEW_PREFIX, JOBS_PREFIX)))


def _lock(folder: Path) -> int:
    """The descriptor that holds the lock. Raises BlockingIOError where another one does."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


class _Server:
    """Forks a supervisor for each job, and does chores while no job waits."""

    def __init__(
        self, control: socket.socket, root: Path, chores: list[Callable[[], None]]
    ) -> None:
        self._control, self._root, self._chores = control, root, chores
        self._waker = wake_on_signals()
        self._supervisors: set[int] = set()
        self._own_modules: set[str] = set()
        self._protections: frozenset[str] | None = None

    def serve(self) -> None:
        """Until the control socket's other end closes, or SIGTERM."""
        while True:
            sources = [self._control.fileno(), self._waker]
            ready, _, _ = select.select(sources, [], [], 0 if self._chores else None)
            if self._waker in ready:
                if signal.SIGTERM in os.read(self._waker, 4096):
                    return
                _reap(self._supervisors)
            if self._control.fileno() in ready:
                header, fds, _, _ = socket.recv_fds(self._control, 64, 3)
                if not header:
                    return
                self._take(*fds)
            elif self._chores and not ready:
                self._chores.pop(0)()

    def _take(self, result: int, channel: int, text: int) -> None:
        """Begin a job. result: write end of the result pipe. channel: the engine's.

        text: the file with the request.
        """
        with open(text, "rb") as file:
            request = msgspec.msgpack.decode(file.read(), type=Request)
        self._learn(request.function.partition(":")[0])
        self._supervisors.add(self._fork_supervisor(request, result, channel))
        os.close(result)
        os.close(channel)

    def _learn(self, module: str) -> None:
        """A module of our own that a job is in will be imported here for the jobs that follow."""
        if module.startswith(_OWN) and module not in self._own_modules:
            self._own_modules.add(module)
            self._chores[:0] = [partial(_import_ahead, module), _settle]

    def _fork_supervisor(self, request: Request, result: int, channel: int) -> int:
        if self._protections is None:
            self._protections = protections_here(self._root)
        pid = os.fork()
        if pid:
            return pid
        try:
            os.close(self._control.detach())
            os.close(self._waker)
            signals = socket.socket(fileno=channel)
            supervise(request, result, signals, self._root, self._protections)
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

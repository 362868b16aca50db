"""The processes of one job: a supervisor that bounds it, and the worker that runs it.

The supervisor adopts every orphan of its worker, so that whatever a job leaves behind is found
and killed before its end is reported. It reads the worker's output, of which only the tail is
kept, and measures wall-clock time, memory, processes and disk. Between the two, where foreign
code runs, stands a keeper: the first process of the worker's own little world (`confine`).
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from mtmc_engine.system import kernel
from mtmc_engine.system.confine import PROCESSES, leave_processes
from mtmc_engine.system.disk import bytes_below, free_share, tidy, unlinked_bytes
from mtmc_engine.system.job_wire import Report, Request
from mtmc_engine.system.processes import MemoryBound, descendants, kill_descendants
from mtmc_engine.system.worker import Word, keep, work

POLL_S = 0.05
DISK_POLL_S = 0.25
_LEAST_FREE = 0.02


def supervise(
    request: Request,
    result: int,
    channel: socket.socket,
    root: Path,
    protections: frozenset[str],
) -> NoReturn:
    """Run one job to its end, in a process just forked from the warm parent; never returns.

    result: write end of the result pipe. channel: to the engine; its closing cancels the job.
    root: folder in which the job's private folder is made. protections: those that work here.
    """
    kernel.adopt_orphans()
    waker = wake_on_signals()
    supervisor = os.getpid()
    channel.sendall(msgspec.json.encode({"supervisor": supervisor}) + b"\n")
    root.mkdir(mode=0o700, exist_ok=True)  # a long session outlives the cleaning of /tmp
    private = Path(tempfile.mkdtemp(prefix="job-", dir=root))
    word_r, word_w = os.pipe()
    output_r, output_w = os.pipe()
    if request.confinement is not None and PROCESSES in protections and not leave_processes():
        protections -= {PROCESSES}
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        for fd in (channel.detach(), waker, word_r, output_r):
            os.close(fd)
        run = work if request.confinement is None else keep
        run(request, supervisor, private, protections, result=result, output=output_w, word=word_w)
    for fd in (result, word_w, output_w):
        os.close(fd)
    tail = _Tail(output_r, request.output_kb * 1024)
    cause, status = _Watch(request, child, private).until_the_end(channel, waker, tail)
    seconds = time.monotonic() - began
    kill_descendants()
    tail.drain()
    word = Word.read(word_r)
    for folder in request.confinement.writable if request.confinement else ():
        tidy(Path(folder))
    shutil.rmtree(tidy(private), ignore_errors=True)
    report = Report(cause, status, seconds, tail.text(), word.protections)
    if word.trouble:
        report = msgspec.structs.replace(report, cause="open", output=word.trouble)
    elif cause == "exit" and word.status is not None:
        report = msgspec.structs.replace(report, status=word.status)
    with suppress(OSError):  # the engine may be gone
        channel.sendall(msgspec.json.encode(report))
    os._exit(0)


def wake_on_signals() -> int:
    """Read end of a pipe that gets a byte for each SIGCHLD and SIGTERM."""
    waker_r, waker_w = os.pipe()
    for fd in (waker_r, waker_w):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(waker_w, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    return waker_r


class _Tail:
    """The last bytes of what a job prints. `fd` is None once every writer has closed."""

    def __init__(self, fd: int, limit: int) -> None:
        os.set_blocking(fd, False)
        self.fd: int | None = fd
        self._limit = limit
        self._kept = bytearray()

    def read(self) -> bool:
        """Take one piece of what is there; False where there is none."""
        if self.fd is None:
            return False
        try:
            piece = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return False
        if not piece:
            self.fd = None
        self._kept += piece
        if len(self._kept) > 2 * self._limit:
            del self._kept[: -self._limit]
        return bool(piece)

    def drain(self) -> None:
        while self.read():
            pass

    def text(self) -> str:
        return self._kept[-self._limit :].decode(errors="replace")


class _Watch:
    """Looks after a job until it ends or must end."""

    def __init__(self, request: Request, child: int, private: Path) -> None:
        self._request, self._child = request, child
        self._memory = MemoryBound(request.memory_mb << 20)
        writable = request.confinement.writable if request.confinement else ()
        self._folders = [private, *map(Path, writable)]
        self._look_again = self._look_at_disk = 0.0

    def until_the_end(self, channel: socket.socket, waker: int, tail: _Tail) -> tuple[str, int]:
        """What ended the job, as a Report names it, and its wait status if it ended itself."""
        parent = os.getppid()
        give_up = time.monotonic() + self._request.wall_s
        while True:
            sources: list[int] = [channel.fileno(), waker]
            if tail.fd is not None:
                sources.append(tail.fd)
            ready, _, _ = select.select(sources, [], [], POLL_S)
            tail.read()
            if waker in ready:
                os.read(waker, 4096)
            ended, status = os.waitpid(self._child, os.WNOHANG)
            if ended:
                return "exit", status
            if channel.fileno() in ready or os.getppid() != parent:
                return "cancelled", 0
            now = time.monotonic()
            if now > give_up:
                return "timeout", 0
            if exceeded := self._exceeded(now):
                return exceeded, 0

    def _exceeded(self, now: float) -> str:
        """The bound that the job has passed, "" for none."""
        if now < self._look_again:
            return ""
        self._look_again = now + POLL_S
        request, processes = self._request, descendants(os.getpid())
        if len(processes) > request.processes:
            return "processes"
        if self._memory.exceeded(processes):
            return "memory"
        if now > self._look_at_disk:
            full = self._fills_disk(processes)
            took = time.monotonic() - now
            self._look_at_disk = now + max(DISK_POLL_S, 20 * took)
            return "disk" if full else ""
        return ""

    def _fills_disk(self, processes: list[int]) -> bool:
        limit = self._request.disk_mb << 20
        used = unlinked_bytes(processes)
        for folder in self._folders:
            used += bytes_below(folder, limit - used)
            if used > limit:
                return True
        scarce = any(free_share(folder) < _LEAST_FREE for folder in self._folders)
        return scarce and used > limit // 16

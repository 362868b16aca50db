"""The two processes of one job: a supervisor that bounds it, and the worker that runs it.

The supervisor adopts every orphan of its worker, so that whatever a job leaves behind is found
and killed before its end is reported. It reads the worker's output, of which only the tail is
kept, and measures wall-clock time and resident memory.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

import msgspec

from mtmc_engine.core.errors import MtmcError
from mtmc_engine.system.environment import private_folders
from mtmc_engine.system.job_wire import Line, Report, Request
from mtmc_engine.system.processes import (
    adopt_orphans,
    descendants,
    end_with_parent,
    kill_descendants,
    leave_network,
    refuse_privileges,
    resident_bytes,
)

POLL_S = 0.05


def supervise(request: Request, result: int, channel: socket.socket, root: Path) -> NoReturn:
    """Run one job to its end, in a process just forked from the warm parent; never returns.

    result: write end of the result pipe. channel: to the engine; its closing cancels the job.
    root: folder in which the job's private folder is made.
    """
    adopt_orphans()
    waker = wake_on_signals()
    supervisor = os.getpid()
    channel.sendall(msgspec.json.encode({"supervisor": supervisor}) + b"\n")
    root.mkdir(mode=0o700, exist_ok=True)  # a long session outlives the cleaning of /tmp
    private = Path(tempfile.mkdtemp(prefix="job-", dir=root))
    network_r, network_w = os.pipe()
    output_r, output_w = os.pipe()
    began = time.monotonic()
    worker = os.fork()
    if worker == 0:
        for fd in (channel.detach(), waker, network_r, output_r):
            os.close(fd)
        _become_worker(supervisor, private, request.cache, output_w)
        os.write(network_w, b"1" if leave_network() else b"0")
        os.close(network_w)
        _answer(request, result)
    for fd in (result, network_w, output_w):
        os.close(fd)
    tail = _Tail(output_r, request.output_kb * 1024)
    cause, status = _watch(request, worker, channel, waker, tail)
    seconds = time.monotonic() - began
    kill_descendants()
    tail.drain()
    network = os.read(network_r, 1) == b"1"
    shutil.rmtree(private, ignore_errors=True)
    report = Report(cause, status, seconds, tail.text(), network)
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


def _watch(
    request: Request, worker: int, channel: socket.socket, waker: int, tail: _Tail
) -> tuple[str, int]:
    """Wait until the worker ends or must end; what ended it, and its wait status if it ended."""
    parent = os.getppid()
    give_up = time.monotonic() + request.wall_s
    look_again = 0.0
    while True:
        sources: list[int] = [channel.fileno(), waker]
        if tail.fd is not None:
            sources.append(tail.fd)
        ready, _, _ = select.select(sources, [], [], POLL_S)
        tail.read()
        if waker in ready:
            os.read(waker, 4096)
        ended, status = os.waitpid(worker, os.WNOHANG)
        if ended:
            return "exit", status
        if channel.fileno() in ready or os.getppid() != parent:
            return "cancelled", 0
        now = time.monotonic()
        if now > give_up:
            return "timeout", 0
        if now > look_again:
            look_again = now + POLL_S
            if resident_bytes(descendants(os.getpid())) > request.memory_mb << 20:
                return "memory", 0


def _become_worker(supervisor: int, private: Path, cache: str, output: int) -> None:
    """Turn a just forked process into a worker: own session, folders, output and rights."""
    gc.enable()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    end_with_parent(supervisor, signal.SIGKILL)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(nothing)
    os.close(output)
    sys.stdout, sys.stderr = _printer(1), _printer(2)
    faulthandler.enable(file=2)
    refuse_privileges()
    os.environ |= private_folders(private, Path(cache) if cache else private / "cache")
    tempfile.tempdir = None  # forget the parent's
    os.chdir(private)
    sys.dont_write_bytecode = True  # no __pycache__ beside the user's file


def _printer(fd: int) -> TextIO:
    """A stream that is written out line by line, so that a crash loses none."""
    return open(fd, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)


def _answer(request: Request, result: int) -> NoReturn:
    """Call the function and send its answer; the process ends here, without clean-up."""

    def send(line: Line) -> None:
        rest = memoryview(msgspec.json.encode(line) + b"\n")
        while rest:
            rest = rest[os.write(result, rest) :]

    def report(value: Any) -> None:
        send(Line(request.nonce, "progress", value))

    try:
        value = _function(request.function)(request.arguments, report)
        send(Line(request.nonce, "value", msgspec.to_builtins(value)))
    except BaseException as error:  # SystemExit too: whatever ends the function is its answer
        send(_failure(request.nonce, error))
    with suppress(Exception):  # a function may have closed or replaced them
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def _function(path: str) -> Callable[[dict[str, Any], Callable[[Any], None]], Any]:
    module, _, name = path.partition(":")
    found: Callable[[dict[str, Any], Callable[[Any], None]], Any]
    found = getattr(importlib.import_module(module), name)
    return found


def _failure(nonce: str, error: BaseException) -> Line:
    first = error.__traceback__.tb_next if error.__traceback__ else None  # leave out _answer
    text = "".join(traceback.format_exception(type(error), error, first))
    sentence = traceback.format_exception_only(error)[-1].strip()
    failure = None
    if isinstance(error, MtmcError):
        failure = {"type": type(error).__name__, "sentence": str(error), **vars(error)}
    return Line(nonce, "error", error=sentence, traceback=text, failure=failure)

"""The process that runs a job's function, and its keeper where the code is foreign."""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TextIO

import msgspec

from mtmc_engine.core.errors import MtmcError
from mtmc_engine.system import kernel
from mtmc_engine.system.confine import NETWORK, PROCESSES, leave_network, shut_in
from mtmc_engine.system.environment import private_folders
from mtmc_engine.system.job_wire import Line, Request, packed

_THREADS_PER_PROCESS = 64


@dataclass(frozen=True)
class Word:
    """What a job's child tells its supervisor.

    protections: what holds. trouble: why it could not be shut in. status: the worker's wait
    status, where a keeper waited for it.
    """

    protections: frozenset[str] = frozenset()
    trouble: str = ""
    status: int | None = None

    @staticmethod
    def read(fd: int) -> Word:
        """What was written with `tell`; nothing where the child died before."""
        with open(fd, "rb") as file:
            lines = file.read().splitlines()
        told: dict[str, Any] = {}
        for line in lines:
            told |= msgspec.json.decode(line)
        return Word(
            frozenset(told.get("protections", ())), told.get("trouble", ""), told.get("status")
        )


def _tell(fd: int, **facts: Any) -> None:
    os.write(fd, msgspec.json.encode(facts) + b"\n")


def work(
    request: Request,
    parent: int,
    private: Path,
    protections: frozenset[str],
    *,
    result: int,
    output: int,
    word: int,
) -> NoReturn:
    """Become the worker of a job of our own: it only leaves the network. Never returns.

    parent: number of the process that this one must not outlive.
    """
    _become_worker(request, parent, private, output)
    held = {NETWORK} if NETWORK in protections and leave_network() else set()
    _tell(word, protections=sorted(held))
    os.close(word)
    _answer(request, result)


def keep(
    request: Request,
    parent: int,
    private: Path,
    protections: frozenset[str],
    *,
    result: int,
    output: int,
    word: int,
) -> NoReturn:
    """Shut this process in, run the worker in a child, and end with it. Never returns.

    As the first of its process namespace it gets no signal from within, and the kernel ends
    everything in there when it ends.
    """
    alone = PROCESSES in protections
    kernel.end_with_parent(0 if alone else parent, signal.SIGKILL)
    _forget_signals()
    assert request.confinement is not None
    needed = list(_paths_in([request.arguments, request.cache]))
    hidden = (*request.confinement.hidden, str(private.parent))
    confinement = msgspec.structs.replace(request.confinement, hidden=hidden)
    try:
        held = shut_in(confinement, private, needed, protections)
    except OSError as error:
        _tell(word, trouble=str(error))
        os._exit(0)
    kernel.hide_memory(True)
    _tell(word, protections=sorted(held))
    keeper = os.getpid()
    worker = os.fork()
    if worker == 0:
        _become_worker(request, keeper, private, output)
        os.closerange(3, result)
        os.closerange(result + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        _bound(request, in_user_namespace=alone and os.geteuid() != 0)
        kernel.give_up_rights(keep_file_rights=os.geteuid() == 0)
        kernel.hide_memory(False)
        _answer(request, result)
    os.close(result)
    os.close(output)
    ended, status = os.wait()
    while ended != worker:
        ended, status = os.wait()
    _tell(word, status=status)
    os._exit(0)


def _paths_in(value: Any) -> list[str]:
    """Every absolute path that a job's arguments name: it stays visible."""
    if isinstance(value, str):
        return [value] if value.startswith("/") else []
    if isinstance(value, dict):
        value = list(value.values())
    return [path for item in value for path in _paths_in(item)] if isinstance(value, list) else []


def _bound(request: Request, in_user_namespace: bool) -> None:
    """What the kernel bounds by itself. Processes it counts for the user, so only within."""
    size = request.disk_mb << 20
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    if in_user_namespace:
        number = request.processes * _THREADS_PER_PROCESS
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NPROC, (number, number))


def _forget_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _become_worker(request: Request, parent: int, private: Path, output: int) -> None:
    """Turn a just forked process into a worker: own session, folders, output and rights."""
    gc.enable()
    _forget_signals()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kernel.end_with_parent(parent, signal.SIGKILL)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(nothing)
    os.close(output)
    sys.stdout, sys.stderr = _printer(1), _printer(2)
    faulthandler.enable(file=2)
    kernel.refuse_privileges()
    cache = Path(request.cache) if request.cache else private / "cache"
    os.environ |= private_folders(private, cache)
    tempfile.tempdir = None  # forget the parent's
    os.chdir(private)
    sys.dont_write_bytecode = True  # no __pycache__ beside the user's file


def _printer(fd: int) -> TextIO:
    """A stream that is written out line by line, so that a crash loses none."""
    return open(fd, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)


def _answer(request: Request, result: int) -> NoReturn:
    """Call the function and send its answer; the process ends here, without clean-up."""

    def send(line: Line) -> None:
        rest = memoryview(packed(line))
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

"""Jobs in disposable child processes: the engine's side.

A job is a function named "package.module:name", called as `name(arguments, report)` in a child
forked for it alone. Bounds, endings and what a child may leave behind are `supervise`'s work.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from mtmc_engine.core.errors import WorkerDied
from mtmc_engine.system.confine import Confinement
from mtmc_engine.system.environment import worker_environment
from mtmc_engine.system.job_result import (
    DEFAULT_LIMITS,
    Ending,
    JobResult,
    Limits,
    judged,
    signal_name,
)
from mtmc_engine.system.job_wire import Line, Report, Request, hand_over, read_answers, read_report
from mtmc_engine.system.processes import send_signal

__all__ = ["Confinement", "Ending", "JobResult", "Limits", "WarmParent", "Workshop"]

Kind = Literal["interpret", "device"]

START_S = 180
_GRACE_S = 15
_CLOSE_S = 0.25  # a warm parent that is importing something does not hear that it shall end
_IMPORT_ROOT = Path(__file__).resolve().parents[2]
# Neither the current folder nor this project may shadow a module that torch imports.
_START = (
    f"import sys; sys.path.append({str(_IMPORT_ROOT)!r}); "
    "from mtmc_engine.system.warm import main; main(sys.argv[1], int(sys.argv[2]))"
)


class _NotBegun(WorkerDied):
    """The warm parent was gone before it took the job."""


class WarmParent:
    """A process with torch and Triton imported, which forks a disposable child for each job.

    kind: "interpret" (TRITON_INTERPRET=1: kernels run on CPU tensors) or "device" (they compile).
    confine: whether jobs that ask for a confinement get it; else they only have no network.
    facts: versions of torch, its CUDA and triton, once started.
    """

    def __init__(self, kind: Kind, confine: bool = True) -> None:
        self.kind, self.confine = kind, confine
        self.facts: dict[str, Any] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._log: IO[bytes] | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start the process if it is not running. Raises WorkerDied where it cannot start."""
        async with self._starting:
            if self._process and self._process.returncode is None:
                return
            await self.close()
            await self._spawn()

    async def _spawn(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._control = ours
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has died
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", _START, self.kind, str(theirs.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=worker_environment(os.environ, self.kind == "interpret"),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        hello, how = b"", "did not start: run `mtmc-tui doctor`."
        process = self._process
        try:
            with suppress(TimeoutError, ConnectionError):
                loop = asyncio.get_running_loop()
                async with asyncio.timeout(START_S):
                    hello = await loop.sock_recv(ours, 1 << 16)
            if not hello and await _has_ended(process):
                how = _how_it_ended(process, "while it started")
        finally:
            if not hello:  # also where this call is cancelled
                send_signal(process, signal.SIGKILL)
                await self.close()
        if not hello:
            raise WorkerDied(f"The {self.kind} worker {how}{self._last_words()}")
        self.facts = msgspec.json.decode(hello)

    def _last_words(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        words = self._log.read().decode(errors="replace").strip().splitlines()
        return f" Its last words: {words[-1]}" if words else ""

    async def run(
        self,
        function: str,
        arguments: dict[str, Any],
        limits: Limits = DEFAULT_LIMITS,
        progress: Callable[[Any], None] | None = None,
        cache: Path | None = None,
        *,
        confinement: Confinement | None = None,
    ) -> JobResult:
        """Call `function` with `arguments` (JSON values) in a fresh child and await its end.

        progress: called with each value that the function reports.
        cache: folder of compiled kernels that outlives the job; None: it ends with the job.
        confinement: how the job is shut in, for one that runs foreign code; None: it has no
            network, and otherwise the user's rights.
        Several may run at once. Cancelling kills the child. Raises WorkerDied where the warm
        parent itself dies meanwhile; the next call starts it again.
        """
        request = Request(
            nonce=secrets.token_hex(16),
            function=function,
            arguments=arguments,
            wall_s=limits.wall_s,
            memory_mb=limits.memory_mb,
            output_kb=limits.output_kb,
            processes=limits.processes,
            disk_mb=limits.disk_mb,
            cache=str(cache or ""),
            confinement=_with_cache(confinement, cache) if self.confine else None,
        )
        try:
            report, answer = await self._attempt(request, progress)
        except _NotBegun:  # the parent had died, or dies just now: a new one serves the job
            report, answer = await self._attempt(request, progress)
        return judged(function, limits, report, answer)

    async def _attempt(
        self, request: Request, progress: Callable[[Any], None] | None
    ) -> tuple[Report, Line | None]:
        """One try at a job. Raises WorkerDied, or _NotBegun where it may be tried again."""
        await self.start()
        process = self._process
        assert process is not None
        sentence = (
            f"The {self.kind} worker was killed during {request.function.partition(':')[2]}, as"
            " happens where memory is short: run it again, with --resume where a session had"
            " begun; the worker itself starts again."
        )
        try:
            result, channel = await self._hand_over(request)
        except ConnectionError as error:
            await _end(process)
            raise _NotBegun(sentence) from error
        answers = asyncio.create_task(read_answers(result, request.nonce, progress))
        try:
            begun, report = await read_report(channel, request.wall_s, _GRACE_S)
            if not begun:
                await _end(process)
                raise _NotBegun(sentence)
            answer = await answers
        finally:
            answers.cancel()
        if report is None and not await _has_ended(process):
            report = Report("exit", signal.SIGKILL, 0.0, "")
        if report is None or (report.cause == "cancelled" and await _has_ended(process)):
            raise WorkerDied(sentence)
        if report.cause == "open":
            raise WorkerDied(f"{request.function} could not be shut in: {report.output}")
        return report, answer

    async def _hand_over(self, request: Request) -> tuple[int, socket.socket]:
        """Send a request; the read end of its result pipe and the supervisor's channel."""
        control = self._control
        assert control is not None
        result_r, result_w = os.pipe()
        ours, theirs = socket.socketpair()
        text = os.memfd_create("mtmc-request")
        try:
            with open(text, "wb", closefd=False) as file:
                file.write(msgspec.msgpack.encode(request))
            os.lseek(text, 0, os.SEEK_SET)
            await hand_over(control, [result_w, theirs.fileno(), text])
        except BaseException:
            os.close(result_r)
            ours.close()
            raise
        finally:
            for fd in (result_w, text):
                os.close(fd)
            theirs.close()
        return result_r, ours

    async def close(self) -> None:
        """End the process and every job of it: a job's supervisor ends with its warm parent."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                async with asyncio.timeout(_CLOSE_S):
                    await self._process.wait()
            except TimeoutError:
                send_signal(self._process, signal.SIGKILL)
                await self._process.wait()
            self._process = None
        if "root" in self.facts:
            shutil.rmtree(self.facts["root"], ignore_errors=True)


def _with_cache(confinement: Confinement | None, cache: Path | None) -> Confinement | None:
    """A confined job that is given a cache may write to it."""
    if confinement is None or cache is None:
        return confinement
    cache.mkdir(parents=True, exist_ok=True)
    return Confinement((*confinement.writable, str(cache)), confinement.hidden)


def _how_it_ended(process: asyncio.subprocess.Process, when: str) -> str:
    """What became of a worker that ended by itself, and what to do: the end of a sentence."""
    code = process.returncode or 0
    if code != -signal.SIGKILL:
        how = signal_name(-code) if code < 0 else f"code {code}"
        return f"ended with {how} {when}: run `mtmc-tui doctor`."
    return (
        f"was killed (SIGKILL) {when}, as happens where memory is short: free some and run the"
        " same command again."
    )


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    """Whether a process has ended; its end is noticed a little later than that of its pipes."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            await process.wait()
    return process.returncode is not None


async def _end(process: asyncio.subprocess.Process) -> None:
    if not await _has_ended(process):
        send_signal(process, signal.SIGKILL)
        await process.wait()


class Workshop:
    """The warm parents of a session. Each starts with its first job, or all with `start`.

    confine: as of WarmParent.
    """

    def __init__(self, confine: bool = True) -> None:
        self.interpret = WarmParent("interpret", confine)
        self.device = WarmParent("device", confine)

    async def start(self) -> None:
        """Start both at once."""
        await asyncio.gather(self.interpret.start(), self.device.start())

    async def close(self) -> None:
        """End both and every job of theirs."""
        await asyncio.gather(self.interpret.close(), self.device.close())

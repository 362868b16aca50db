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
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from mtmc_engine.core import errors
from mtmc_engine.core.errors import MtmcError, WorkerDied
from mtmc_engine.system.environment import worker_environment
from mtmc_engine.system.supervise import Line, Report, Request

Kind = Literal["interpret", "device"]

START_S = 180
_GRACE_S = 15
_ANSWER_BYTES = 1 << 28
_IMPORT_ROOT = Path(__file__).resolve().parents[2]
# Neither the current folder nor this project may shadow a module that torch imports.
_START = (
    f"import sys; sys.path.append({str(_IMPORT_ROOT)!r}); "
    "from mtmc_engine.system.warm import main; main(sys.argv[1], int(sys.argv[2]))"
)


@dataclass(frozen=True)
class Limits:
    """Bounds of one job.

    wall_s: wall-clock seconds. memory_mb: resident MiB of all its processes together, looked at
    twenty times a second. output_kb: KiB of its printed output that are kept, from the end.
    """

    wall_s: float = 120
    memory_mb: int = 8192
    output_kb: int = 256


class Ending(StrEnum):
    """How a job ended. EXITED: it left without an answer, as os._exit does."""

    DONE = "done"
    RAISED = "raised"
    TIMEOUT = "timeout"
    SIGNAL = "signal"
    MEMORY = "memory"
    EXITED = "exited"


@dataclass(frozen=True)
class JobResult:
    """What became of a job.

    value: the JSON value that the function returned; None unless DONE. JSON has no NaN or
        infinity: they arrive as None.
    error: "Type: message" of an exception; for other bad endings one sentence.
    signal: the number of the signal that ended it, or 0. seconds: wall-clock time.
    output: tail of what it printed. network: whether it was cut off from the network.
    """

    ending: Ending
    value: Any = None
    error: str = ""
    traceback: str = ""
    signal: int = 0
    seconds: float = 0.0
    output: str = ""
    network_cut: bool = False
    failure: dict[str, Any] | None = None

    def unwrap(self) -> Any:
        """The value. Raises the job's own MtmcError as it was, or WorkerDied for other endings."""
        if self.ending is Ending.DONE:
            return self.value
        if self.failure:
            raise _rebuilt(self.failure)
        raise WorkerDied(self.error)


def _rebuilt(failure: dict[str, Any]) -> MtmcError:
    fields = dict(failure)
    kind = getattr(errors, fields.pop("type"), MtmcError)
    error: MtmcError = kind(fields.pop("sentence"))
    for name, value in fields.items():
        setattr(error, name, value)
    return error


class WarmParent:
    """A process with torch and Triton imported, which forks a disposable child for each job.

    kind: "interpret" (TRITON_INTERPRET=1: kernels run on CPU tensors) or "device" (they compile).
    facts: versions of torch, its CUDA and triton, once started.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
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
        hello = b""
        with suppress(TimeoutError, ConnectionError):
            loop = asyncio.get_running_loop()
            hello = await asyncio.wait_for(loop.sock_recv(ours, 1 << 16), START_S)
        if not hello:
            await self.close()
            raise WorkerDied(
                f"The {self.kind} worker did not start: run `mtmc-tui doctor`.{self._last_words()}"
            )
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
        limits: Limits = Limits(),
        progress: Callable[[Any], None] | None = None,
        cache: Path | None = None,
    ) -> JobResult:
        """Call `function` with `arguments` (JSON values) in a fresh child and await its end.

        progress: called with each value that the function reports.
        cache: folder of compiled kernels that outlives the job; only for code that is trusted.
        Several may run at once. Cancelling kills the child. Raises WorkerDied where the warm
        parent itself dies meanwhile; the next call starts it again.
        """
        await self.start()
        nonce = secrets.token_hex(16)
        request = Request(
            nonce=nonce,
            function=function,
            arguments=arguments,
            wall_s=limits.wall_s,
            memory_mb=limits.memory_mb,
            output_kb=limits.output_kb,
            cache=str(cache or ""),
        )
        result, channel = await self._hand_over(request)
        answers = asyncio.create_task(_read_answers(result, nonce, progress))
        try:
            report = await self._report(channel, limits.wall_s)
            answer = await answers
        finally:
            answers.cancel()
        if (report is None or report.cause == "cancelled") and await self._is_dead():
            raise WorkerDied(
                f"The {self.kind} worker died during {function}; it starts again with the next job."
            )
        return _judged(function, limits, report, answer)

    async def _hand_over(self, request: Request) -> tuple[int, socket.socket]:
        """Send a request; the read end of its result pipe and the supervisor's channel."""
        control = self._control
        assert control is not None
        result_r, result_w = os.pipe()
        ours, theirs = socket.socketpair()
        text = os.memfd_create("mtmc-request")
        try:
            with open(text, "wb", closefd=False) as file:
                file.write(msgspec.json.encode(request))
            os.lseek(text, 0, os.SEEK_SET)
            await self._send(control, [result_w, theirs.fileno(), text])
        except BaseException:
            os.close(result_r)
            ours.close()
            raise
        finally:
            for fd in (result_w, text):
                os.close(fd)
            theirs.close()
        return result_r, ours

    async def _send(self, control: socket.socket, fds: list[int]) -> None:
        while True:
            try:
                socket.send_fds(control, [b"job"], fds)
                return
            except BlockingIOError:
                await asyncio.sleep(0.01)
            except OSError as error:
                raise WorkerDied(f"The {self.kind} worker is gone; try again.") from error

    async def _report(self, channel: socket.socket, wall_s: float) -> Report | None:
        """What the supervisor says at the end; None where it ended without a word."""
        reader, writer = await asyncio.open_connection(sock=channel, limit=_ANSWER_BYTES)
        try:
            first = await reader.readline()
            last = await asyncio.wait_for(reader.read(), wall_s + _GRACE_S)
        except TimeoutError:  # it was stopped by its job
            os.kill(msgspec.json.decode(first)["supervisor"], signal.SIGKILL)
            return Report("timeout", 0, wall_s + _GRACE_S, "", network=False)
        except asyncio.CancelledError:
            writer.write_eof()
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(), _GRACE_S)
            raise
        finally:
            writer.close()
        return msgspec.json.decode(last, type=Report) if last else None

    async def _is_dead(self) -> bool:
        assert self._process is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 0.5)
        return self._process.returncode is not None

    async def close(self) -> None:
        """End the process and every job of it."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                await asyncio.wait_for(self._process.wait(), _GRACE_S)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
            self._process = None
        if "root" in self.facts:
            shutil.rmtree(self.facts["root"], ignore_errors=True)


async def _read_answers(
    result: int, nonce: str, progress: Callable[[Any], None] | None
) -> Line | None:
    """Pass on progress until the pipe ends; the answer, if one came. Other lines are ignored."""
    reader = asyncio.StreamReader(limit=_ANSWER_BYTES)
    pipe = open(result, "rb")  # noqa: SIM115 - the transport closes it
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    answer: Line | None = None
    try:
        while text := await reader.readline():
            with suppress(msgspec.MsgspecError):
                line = msgspec.json.decode(text, type=Line)
                if line.nonce != nonce:
                    continue
                if line.kind != "progress":
                    answer = line
                elif progress is not None:
                    progress(line.value)
    finally:
        transport.close()
    return answer


def _judged(function: str, limits: Limits, report: Report | None, answer: Line | None) -> JobResult:
    """The ending that supervisor and worker together tell of."""
    if report is None:
        report = Report("exit", signal.SIGKILL, 0.0, "", network=False)
    number = os.WTERMSIG(report.status) if os.WIFSIGNALED(report.status) else 0

    def ended(ending: Ending, error: str = "") -> JobResult:
        return JobResult(
            ending,
            value=answer.value if answer and ending is Ending.DONE else None,
            error=error,
            traceback=answer.traceback if answer else "",
            signal=number,
            seconds=report.seconds,
            output=report.output,
            network_cut=report.network,
            failure=answer.failure if answer else None,
        )

    if report.cause == "timeout":
        return ended(Ending.TIMEOUT, f"{function} took longer than {limits.wall_s:g} s")
    if report.cause == "memory":
        return ended(Ending.MEMORY, f"{function} used more than {limits.memory_mb} MB")
    if answer is not None:
        return ended(Ending.RAISED if answer.kind == "error" else Ending.DONE, answer.error)
    if number:
        return ended(Ending.SIGNAL, f"{function} was ended by {_signal_name(number)}")
    code = os.waitstatus_to_exitcode(report.status)
    return ended(Ending.EXITED, f"{function} left without an answer, exit code {code}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


class Workshop:
    """The warm parents of a session. Each starts with its first job, or all with `start`."""

    def __init__(self) -> None:
        self.interpret = WarmParent("interpret")
        self.device = WarmParent("device")

    async def start(self) -> None:
        """Start both at once."""
        await asyncio.gather(self.interpret.start(), self.device.start())

    async def close(self) -> None:
        """End both and every job of theirs."""
        await asyncio.gather(self.interpret.close(), self.device.close())

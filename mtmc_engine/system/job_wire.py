"""What passes between engine, supervisor and worker of one job, and how the engine reads it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from mtmc_engine.system.confine import Confinement

LINE_BYTES = 1 << 26  # most that one line may hold


class Request(Struct, frozen=True):
    """What the engine asks for. `nonce` marks each line of the answer as this job's own.

    cache: folder of compiled kernels; "" for one that ends with the job.
    confinement: how a job that runs foreign code is shut in; None for code of our own.
    """

    nonce: str
    function: str
    arguments: dict[str, Any]
    wall_s: float
    memory_mb: int
    output_kb: int
    processes: int
    disk_mb: int
    cache: str = ""
    confinement: Confinement | None = None


class Line(Struct, frozen=True, omit_defaults=True):
    """One line on the result pipe. kind: "progress", or for the one answer "value" or "error"."""

    nonce: str
    kind: str
    value: Any = None
    error: str = ""
    traceback: str = ""
    failure: dict[str, Any] | None = None


class Report(Struct, frozen=True):
    """How a job ended, by its supervisor.

    cause: "exit", "timeout", "memory", "processes", "disk", "cancelled", or "open" where it could
    not be shut in and was not run; output then says why.
    status: as of waitpid. seconds: wall-clock time of the worker. output: tail of what it printed.
    protections: those of `confine` that held.
    """

    cause: str
    status: int
    seconds: float
    output: str
    protections: frozenset[str] = frozenset()


def packed(line: Line) -> bytes:
    """A line as it travels: unlike JSON it keeps NaN and infinities, which are results here."""
    return b64encode(msgspec.msgpack.encode(line)) + b"\n"


def unpacked(text: bytes) -> Line | None:
    """The line that was packed so; None for anything else."""
    try:
        return msgspec.msgpack.decode(b64decode(text, validate=False), type=Line)
    except (ValueError, msgspec.MsgspecError):
        return None


async def hand_over(control: socket.socket, fds: list[int]) -> None:
    """Give the warm parent the descriptors of one job. Raises ConnectionError where it is gone."""
    while True:
        try:
            socket.send_fds(control, [b"job"], fds)
            return
        except BlockingIOError:  # more jobs wait than the socket holds
            await asyncio.sleep(0.01)


async def read_answers(
    result: int, nonce: str, progress: Callable[[Any], None] | None
) -> Line | None:
    """Pass on progress until the pipe ends; the answer, if one came. Other lines are ignored."""
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    pipe = open(result, "rb")  # noqa: SIM115 - the transport closes it
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    answer: Line | None = None
    try:
        while line := await _next_line(reader):
            if line.nonce != nonce:
                continue
            if line.kind != "progress":
                answer = line
            elif progress is not None:
                progress(line.value)
    finally:
        transport.close()
    return answer


async def _next_line(reader: asyncio.StreamReader) -> Line | None:
    """The next line; None at the end, or after more bytes without one than are held."""
    try:
        text = await reader.readline()
    except ValueError:  # a line without end, which only a job that tampers with the pipe writes
        return None
    return unpacked(text) or Line(nonce="", kind="noise") if text else None


async def read_report(
    channel: socket.socket, wall_s: float, grace_s: float
) -> tuple[bool, Report | None]:
    """Whether the job began, and what its supervisor says at the end, if it lives to say it."""
    reader, writer = await asyncio.open_connection(sock=channel, limit=LINE_BYTES)
    supervisor = 0
    try:
        async with asyncio.timeout(grace_s):
            first = await reader.readline()
        if not first:
            return False, None
        supervisor = int(msgspec.json.decode(first)["supervisor"])
        async with asyncio.timeout(wall_s + grace_s):
            last = await reader.read()
    except TimeoutError:
        if not supervisor:
            return False, None
        with suppress(ProcessLookupError):
            os.kill(supervisor, signal.SIGKILL)  # its job has stopped it
        return True, Report("timeout", 0, wall_s + grace_s, "")
    except asyncio.CancelledError:
        writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await reader.read()
        raise
    finally:
        writer.close()
    return True, msgspec.json.decode(last, type=Report) if last else None

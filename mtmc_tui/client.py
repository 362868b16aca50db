"""The engine as a client sees it: a process, a stream of events, commands sent back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

import mtmc_engine
from mtmc_engine.core.events import (
    AnyCommand,
    AnyEvent,
    Failed,
    SessionFinished,
    Stop,
    decode_event,
    encode,
)
from mtmc_engine.core.options import RunOptions, encode_options

LONGEST_LINE = 256 * 1024 * 1024


class Engine:
    """A running engine. Make it with `Engine.start`; read `events()` once, to the end.

    log: the file that holds what the engine and its children wrote to standard error.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log
        self.finished = False

    @classmethod
    async def start(cls, options: RunOptions, log: Path | None = None) -> Engine:
        """Start `python -m mtmc_engine run` in a session of its own, out of reach of Ctrl-C."""
        return cls(*await _spawn(["run", options.file, encode_options(options).decode()], log))

    async def events(self) -> AsyncIterator[AnyEvent]:
        """All events to the last one, which is a SessionFinished or a Failed.

        An engine that ends without either yields a Failed that names the log.
        """
        stdout = self.process.stdout
        assert stdout is not None
        while line := await stdout.readline():
            try:
                event = decode_event(line)
            except msgspec.DecodeError as error:
                yield await self._unreadable(error)
                return
            self.finished = isinstance(event, SessionFinished | Failed)
            yield event
            if self.finished:
                return
        yield await self._died()

    async def send(self, command: AnyCommand) -> None:
        """Ask the engine for something. Nothing happens where it has already ended."""
        self.write_line(encode(command))
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                await self.process.stdin.drain()

    def write_line(self, line: bytes) -> None:
        """Queue a command that is already one line of JSON, without its newline."""
        stdin = self.process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(line + b"\n")

    def close_input(self) -> None:
        """Tell the engine that nobody will answer any more."""
        if self.process.stdin is not None:
            self.process.stdin.close()

    async def wait(self) -> int:
        """Exit code of the engine, once it has ended."""
        return await self.process.wait()

    async def stop(self, grace_s: float = 0.7) -> None:
        """End the engine and its children: ask, then terminate, then kill. Takes about a second.

        Closing its input tells it not to confirm and export what it has first.
        """
        await self.send(Stop(reason="the client ended"))
        self.close_input()
        for signal_number in (None, signal.SIGTERM, signal.SIGKILL):
            if signal_number is not None:
                self._signal(signal_number)
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(grace_s / 2):
                    await self.process.wait()
                return
        await self.process.wait()

    def kill(self) -> None:
        """End the engine at once. What was decided is in its journal."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        _send_signal(self.process, number)

    async def _died(self) -> Failed:
        code = await self.process.wait()
        how = (
            f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        )
        text = f"The engine {how} without finishing; see {self.log}, and go on with --resume."
        return Failed(text=text, exit_code=1, kind="died")

    async def _unreadable(self, error: msgspec.DecodeError) -> Failed:
        self.kill()
        await self.process.wait()
        text = f"The engine said something unreadable ({error}); see {self.log}."
        return Failed(text=text, exit_code=1, kind="protocol")


async def run_document(arguments: list[str]) -> tuple[int, bytes]:
    """Run an engine command that prints one JSON document: exit code and document.

    What it says on standard error, such as its one sentence about an error, goes to ours.
    """
    process = await asyncio.create_subprocess_exec(
        *engine_command(arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        env=engine_environment(),
    )
    try:
        stdout, _ = await process.communicate()
    except asyncio.CancelledError:
        await _end(process)
        raise
    return process.returncode or 0, stdout


def engine_command(arguments: list[str]) -> list[str]:
    """Command line that runs the engine with this interpreter.

    -P keeps modules of the current folder, such as a user's random.py, out of the engine.
    """
    return [sys.executable, "-P", "-m", "mtmc_engine", *arguments]


def engine_environment() -> dict[str, str]:
    """This environment, with the package findable where it runs from a source tree."""
    root = Path(mtmc_engine.__file__).parent.parent
    if root.name in ("site-packages", "dist-packages"):
        return dict(os.environ)
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(root), inherited)))}


def new_log() -> Path:
    """A fresh log file's path, in the user's log folder or in $MTMC_HOME/logs."""
    home = os.environ.get("MTMC_HOME")
    if home:
        folder = Path(home) / "logs"
    else:
        from platformdirs import user_log_path

        folder = user_log_path("mtmc-tui")
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"engine-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"


async def _spawn(arguments: list[str], log: Path | None) -> tuple[asyncio.subprocess.Process, Path]:
    path = log or new_log()
    with path.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *engine_command(arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=LONGEST_LINE,
            start_new_session=True,
            env={**engine_environment(), "MTMC_LOG": str(path)},
        )
    return process, path


async def _end(process: asyncio.subprocess.Process) -> None:
    _send_signal(process, signal.SIGTERM)
    with contextlib.suppress(asyncio.TimeoutError):
        async with asyncio.timeout(0.7):
            await process.wait()
        return
    _send_signal(process, signal.SIGKILL)
    await process.wait()


def _send_signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Not by `Process.send_signal`, whose poll may take the exit status from the event loop."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)

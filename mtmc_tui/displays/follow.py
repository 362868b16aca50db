"""Following a run to its end: what the plain and the json display share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Protocol

from mtmc_engine.core.events import AnyEvent, Failed, SessionFinished
from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import Engine

INTERRUPTS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Display(Protocol):
    """Shows events, and passes on what the user answers."""

    def begin(self, engine: Engine) -> None:
        """Called once, before the first event."""

    def show(self, event: AnyEvent) -> None:
        """Called with each event. Raises BrokenPipeError where nobody reads any more."""


async def follow(options: RunOptions, display: Display) -> int:
    """Run the engine under a display: the exit code.

    Ctrl-C ends the engine and its children within a second and leaves the journal.
    """
    engine = await Engine.start(options)
    interrupted: list[int] = []
    endings: set[asyncio.Task[None]] = set()

    def interrupt(code: int) -> None:
        if not interrupted:
            interrupted.append(code)
            endings.add(asyncio.create_task(engine.stop()))

    loop = asyncio.get_running_loop()
    for number, code in INTERRUPTS.items():
        loop.add_signal_handler(number, interrupt, code)
    display.begin(engine)
    code = 1
    try:
        async for event in engine.events():
            if not (interrupted and isinstance(event, Failed)):
                display.show(event)
            if isinstance(event, SessionFinished | Failed):
                code = event.exit_code
    except BrokenPipeError:
        _forget_stdout()
    finally:
        await engine.stop()
    if interrupted:
        print("Stopped; the same command with --resume goes on.", file=sys.stderr)
        return interrupted[0]
    return code


def read_answers(receive: Callable[[bytes | None], None]) -> None:
    """Call `receive` in the event loop with each line of standard input, and None at its end.

    The thread reads the bare descriptor, since a buffered reader would hold its lock at exit,
    and reads on only when a line was received, so that an editor may have the terminal.
    """
    loop = asyncio.get_running_loop()

    def post(line: bytes | None) -> None:
        received = threading.Event()

        def handle() -> None:
            try:
                receive(line)
            finally:
                received.set()

        with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
            loop.call_soon_threadsafe(handle)
            received.wait()

    def run() -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(0, 65536):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    post(line)
        if rest:
            post(rest)
        post(None)

    threading.Thread(target=run, name="stdin", daemon=True).start()


def _forget_stdout() -> None:
    """Keep the interpreter from complaining about the closed pipe when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

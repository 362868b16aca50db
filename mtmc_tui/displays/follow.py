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

from msgspec.structs import replace

from mtmc_engine.core.events import AnyEvent, Failed, NodeAdded, SessionFinished
from mtmc_engine.core.lines import read_lines
from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import Engine

INTERRUPTS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
GO_ON = "Stopped; the same command with --resume goes on."
PATIENCE_S = 0.8
NOTHING_YET = "Stopped before anything was tried: there is nothing to go on with."


class Display(Protocol):
    """Shows events, and passes on what the user answers."""

    def begin(self, engine: Engine) -> None:
        """Called once, before the first event."""

    def show(self, event: AnyEvent) -> None:
        """Called with each event. Raises OSError where standard output cannot be written."""


async def follow(options: RunOptions, display: Display) -> int:
    """Run the engine under a display: the exit code.

    Ctrl-C and its like end the engine and its children within a second and leave the journal;
    the last event shown then carries the exit code of that signal. Where the reader of standard
    output has stalled it never sees it, and the process ends all the same.
    """
    stop = _Interruption()
    engine = await Engine.start(options)
    stop.begin(engine)
    display.begin(engine)
    code, resumable = 1, False
    try:
        async for event in engine.events():
            resumable = resumable or isinstance(event, NodeAdded)
            if not isinstance(event, SessionFinished | Failed):
                await stop.unless_stalled(display.show, event)
                continue
            last = stop.on_last(event, resumable)
            code = last.exit_code
            await stop.unless_stalled(display.show, last)
            if stop.code and isinstance(last, SessionFinished):
                print(GO_ON, file=sys.stderr)
    except BrokenPipeError:
        _forget_stdout()
    except _Stalled:
        await engine.stop()
        print(GO_ON if resumable else NOTHING_YET, file=sys.stderr, flush=True)
        os._exit(stop.code)  # a thread that writes to a full pipe cannot be ended otherwise
    except OSError as error:
        _forget_stdout()
        code = 1
        print(f"Standard output cannot be written: {error.strerror}.", file=sys.stderr)
    finally:
        await engine.stop()
    return stop.code or code


class _Stalled(Exception):
    """The run shall end, and nobody reads what it says."""


class _Interruption:
    """Signals that end the run. code: of the first one that came, 0 before."""

    def __init__(self) -> None:
        self.code = 0
        self._came = asyncio.Event()
        self._engine: Engine | None = None
        self._ending: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        for number, code in INTERRUPTS.items():
            loop.add_signal_handler(number, self._interrupt, code)

    def begin(self, engine: Engine) -> None:
        """From now on there is an engine to end; at once, if a signal came before."""
        self._engine = engine
        self._end()

    def on_last(self, event: SessionFinished | Failed, resumable: bool) -> SessionFinished | Failed:
        """The run's last event as it is shown: an interrupted run has its signal's code."""
        if not self.code:
            return event
        if isinstance(event, Failed):
            return Failed(GO_ON if resumable else NOTHING_YET, self.code, "stopped")
        return replace(event, exit_code=self.code)

    async def unless_stalled(self, show: Callable[[AnyEvent], None], event: AnyEvent) -> None:
        """Show an event off the loop, so that a reader that stalls keeps no signal waiting.

        Raises _Stalled where that is still not done some time after a signal.
        """
        showing = asyncio.ensure_future(asyncio.to_thread(show, event))
        waiting = asyncio.ensure_future(self._out_of_patience())
        await asyncio.wait({showing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not showing.done():
            raise _Stalled
        showing.result()

    async def _out_of_patience(self) -> None:
        await self._came.wait()
        await asyncio.sleep(PATIENCE_S)

    def _interrupt(self, code: int) -> None:
        self.code = self.code or code
        self._came.set()
        self._end()

    def _end(self) -> None:
        if self.code and self._engine is not None and self._ending is None:
            self._ending = asyncio.create_task(self._engine.stop())


def read_answers(receive: Callable[[bytes | None], None]) -> None:
    """Call `receive` in the event loop with each line of standard input, and None at its end.

    The thread reads on only when a line was received, so that an editor may have the terminal.
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
        for line in read_lines(0):
            post(line)
        post(None)

    threading.Thread(target=run, name="stdin", daemon=True).start()


def _forget_stdout() -> None:
    """Keep the interpreter from complaining about the closed pipe when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

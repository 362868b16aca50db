"""Standard input and output of the engine as lines, off the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable

from mtmc_engine.core.lines import read_lines


class LineWriter:
    """Writes lines to a descriptor from a thread, so that a slow reader blocks nobody.

    on_gone: called in the event loop, once, when the reader has closed its end.
    """

    def __init__(self, descriptor: int, on_gone: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="stdout", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queue one line; the newline is added."""
        self._lines.put(line + b"\n")

    def close(self, patience_s: float = 5.0) -> None:
        """Wait until everything is written, but no longer than the patience."""
        self._lines.put(None)
        self._thread.join(patience_s)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                _write_all(self._descriptor, line)
            except OSError:
                self._loop.call_soon_threadsafe(self._on_gone)
                return


def receive_lines(descriptor: int, receive: Callable[[bytes | None], None]) -> None:
    """Call `receive` in the event loop with each line, and with None at the end of input."""
    loop = asyncio.get_running_loop()

    def post(line: bytes | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
            loop.call_soon_threadsafe(receive, line)

    def run() -> None:
        for line in read_lines(descriptor):
            post(line)
        post(None)

    threading.Thread(target=run, name="stdin", daemon=True).start()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

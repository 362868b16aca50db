"""A child process on a pseudo-terminal of a given size, and the time until bytes come from it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from contextlib import suppress
from pathlib import Path

CONTROL = re.compile(
    rb"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b\][^\x07]*\x07|\x1b[PX^_].*?\x1b\\|\x1b[()=>78].?"
)


class Terminal:
    """Runs a command on a terminal; `output` is all that it wrote."""

    def __init__(
        self, command: list[str], size: tuple[int, int], environment: dict[str, str]
    ) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._fd = ours
        self.output = b""
        self._queued: dict[int, int] = {}
        self.queued_before = self.seconds_in_queue()

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._fd, keys.encode())

    def seconds_until(self, text: str, start: float, limit: float = 20.0) -> float:
        """Time from `start` until `text` is written after what was there before the call."""
        seen = len(self.output)
        while time.monotonic() - start < limit:
            if text.encode() in CONTROL.sub(b"", self.output[seen:]):
                return time.monotonic() - start
            self.read(0.005)
        shown = CONTROL.sub(b"", self.output)[-2000:].decode(errors="replace")
        raise AssertionError(f"{text!r} was not written in {limit} s; the end: {shown}")

    def seconds_in_queue(self) -> float:
        """Time that this process and the one on the terminal could have run but had no core.

        Where the other process has ended, what was last read of it counts.
        """
        for pid in (os.getpid(), self.process.pid):
            with suppress(FileNotFoundError, ProcessLookupError):
                self._queued[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
        return sum(self._queued.values()) / 1e9

    def seconds_of_its_own(self, key: str, text: str) -> float:
        """Time from a key to `text`, without the time that other processes had the cores."""
        queued = self.seconds_in_queue()
        start = time.monotonic()
        self.press(key)
        took = self.seconds_until(text, start)
        return took - (self.seconds_in_queue() - queued)

    def read(self, wait: float) -> None:
        """Take what is there within `wait` seconds."""
        if select.select([self._fd], [], [], wait)[0]:
            try:
                self.output += os.read(self._fd, 1 << 16)
            except OSError:
                time.sleep(wait)

    def seconds_until_end(self, limit: float = 10.0) -> float:
        """Time from now until the process has ended, without the time that others had the cores."""
        queued, start = self.seconds_in_queue(), time.monotonic()
        while time.monotonic() - start < limit:
            if self.process.poll() is not None:
                return time.monotonic() - start - (self.seconds_in_queue() - queued)
            self.seconds_in_queue()
            self.read(0.005)
        raise AssertionError(f"it did not end in {limit} s")

    def close(self) -> None:
        """End the process, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._fd)

"""One JSON object per event per line on standard output; decisions as JSON lines on input."""

from __future__ import annotations

import asyncio
import sys

from mtmc_engine.core.events import AnyEvent, Failed, Notice, encode
from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import Engine
from mtmc_tui.displays.follow import follow, read_answers


class JsonDisplay:
    """The protocol as it is, for scripts and editors."""

    def begin(self, engine: Engine) -> None:
        """Pass the lines of standard input on to the engine."""

        def receive(line: bytes | None) -> None:
            if line is None:
                engine.close_input()
            else:
                engine.write_line(line)

        read_answers(receive)

    def show(self, event: AnyEvent) -> None:
        """Write one line; what ends the run is said on standard error as well."""
        sys.stdout.buffer.write(encode(event) + b"\n")
        sys.stdout.buffer.flush()
        if isinstance(event, Failed) or (isinstance(event, Notice) and event.level == "error"):
            print(event.text, file=sys.stderr)


def run_json(options: RunOptions) -> int:
    """Run to the end: the exit code."""
    return asyncio.run(follow(options, JsonDisplay()))

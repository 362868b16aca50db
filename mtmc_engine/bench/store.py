"""The file of results: one JSON line a task, written as soon as the task is done."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from mtmc_engine.bench.line import Line
from mtmc_engine.core.errors import UsageError


class Store:
    """Lines in a file, or nowhere but in memory where `path` is None.

    resume: lines that are there already are kept. A line that a killed bench left half written
    is passed over. Raises UsageError where the file cannot be used.
    """

    def __init__(self, path: Path | None, resume: bool) -> None:
        self.lines: list[Line] = []
        self._path = path
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise UsageError(f"{path} cannot be used for results: {error.strerror}.") from error
        if before and not resume:
            raise UsageError(f"{path} holds results already: go on with --resume, or remove it.")
        self.lines = [line for text in before.splitlines() if (line := _read(text))]
        if before and not before.endswith(b"\n"):
            self._append(b"\n")

    def add(self, line: Line) -> None:
        """Keep a line for good."""
        self.lines.append(line)
        self._append(msgspec.json.encode(line) + b"\n")

    def _append(self, text: bytes) -> None:
        """In one piece, so that a kill leaves at most the end of one line out."""
        if self._path is None:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, text)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read(text: bytes) -> Line | None:
    try:
        return msgspec.json.decode(text, type=Line)
    except msgspec.MsgspecError:
        return None

"""Reading lines from a descriptor, in time linear in their length."""

from __future__ import annotations

import os
from collections.abc import Iterator

# An edited program is one line: this is a hundred times a large one.
LONGEST_LINE = 4 * 1024 * 1024
_CHUNK = 65536


def read_lines(descriptor: int, longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Lines of a descriptor without their newline, as they arrive, to its end.

    Of a line longer than `longest` bytes come its first `longest + 1`, by which it is known; the
    rest is read and forgotten. The bare descriptor is read, since a buffered reader in a thread
    would hold its lock at exit.
    """
    kept = bytearray()
    while chunk := _read(descriptor):
        *ended, begun = chunk.split(b"\n")
        for piece in ended:
            kept += piece[: longest + 1 - len(kept)]
            yield bytes(kept)
            kept.clear()
        kept += begun[: longest + 1 - len(kept)]
    if kept:
        yield bytes(kept)


def _read(descriptor: int) -> bytes:
    """The next bytes; none at the end, which is also where a terminal was hung up."""
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:
        return b""

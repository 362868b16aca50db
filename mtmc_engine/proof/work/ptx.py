"""PTX as a person reads it."""

from __future__ import annotations

import re

MOST_CHARACTERS = 40_000
_DEBUGGING = re.compile(r"^\s*(\.loc|\.file|//|\$L__tmp|\$L__func)|^\s*$")
_SECTION = re.compile(r"^\s*\.section\s")


def readable_ptx(text: str) -> str:
    """The instructions of a kernel: no line table, no debugging section, and not without end."""
    kept = []
    for line in text.splitlines():
        if _SECTION.match(line):  # debugging data stands at the end
            break
        if not _DEBUGGING.match(line):
            kept.append(line.rstrip())
    whole = "\n".join(kept)
    if len(whole) <= MOST_CHARACTERS:
        return whole
    cut = whole[: whole.rindex("\n", 0, MOST_CHARACTERS)]
    left = whole.count("\n") - cut.count("\n")
    return f"{cut}\n// {left} more lines are not kept"

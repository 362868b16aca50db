"""Fenced blocks of a reply, as models really write them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

_OPENING = re.compile(r"^(?P<indent>[ \t]*)(?:[-*>]\s+)?(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)$")
# What a fence may say that holds no Python.
_OTHER = frozenset(
    {
        "text",
        "txt",
        "plaintext",
        "bash",
        "sh",
        "shell",
        "console",
        "diff",
        "json",
        "cuda",
        "cpp",
        "c",
    }
)


@dataclass(frozen=True)
class Fence:
    """One block of code. language: in lower case, "" where unsaid. closed: whether it ends."""

    language: str
    code: str
    closed: bool

    @property
    def may_be_python(self) -> bool:
        return self.language not in _OTHER


def fences_in(text: str) -> tuple[Fence, ...]:
    """All fenced blocks, in order; the last one may lack its end."""
    found: list[Fence] = []
    lines: list[str] = []
    opening: re.Match[str] | None = None
    for line in text.splitlines():
        if opening is None:
            opening, lines = _OPENING.match(line), []
        elif _closes(line, opening["mark"]):
            found.append(_fence(opening, lines, closed=True))
            opening = None
        else:
            lines.append(line)
    if opening is not None:
        found.append(_fence(opening, lines, closed=False))
    return tuple(found)


def _closes(line: str, mark: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(mark) and set(bare) == {mark[0]}


def _fence(opening: re.Match[str], lines: list[str], closed: bool) -> Fence:
    words = opening["info"].strip().lower().split()
    language = words[0].strip("{}.") if words else ""
    code = textwrap.dedent("\n".join(lines)) if opening["indent"] else "\n".join(lines)
    return Fence(language, code.strip("\n") + "\n", closed)

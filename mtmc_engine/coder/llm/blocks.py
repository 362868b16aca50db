"""SEARCH/REPLACE blocks: found in a reply, applied to a source all together or not at all."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

_SEARCH = re.compile(r"^\s*<{5,9}\s*(?:SEARCH|ORIGINAL|HEAD)\b.*$", re.IGNORECASE)
_MIDDLE = re.compile(r"^\s*={5,9}\s*$")
_REPLACE = re.compile(r"^\s*>{5,9}(?:\s*(?:REPLACE|UPDATED)\b.*|\s*)$", re.IGNORECASE)
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\w*\s*$")


class NoMatch(Exception):
    """Blocks that cannot be read or applied. `str(error)` is the reason, without a full stop."""


@dataclass(frozen=True)
class Block:
    """Lines to find, and lines that take their place."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


def has_blocks(text: str) -> bool:
    """Whether a line of the text opens a block."""
    return any(_SEARCH.match(line) for line in text.splitlines())


def blocks_in(text: str) -> tuple[Block, ...]:
    """The blocks of a reply, whatever stands between them.

    Raises NoMatch for a block without its middle or its end.
    """
    found: list[Block] = []
    search: list[str] = []
    replace: list[str] = []
    part = "outside"
    for line in text.splitlines():
        if part == "outside" and _SEARCH.match(line):
            part, search, replace = "search", [], []
        elif part == "search" and _MIDDLE.match(line):
            part = "replace"
        elif part == "replace" and _REPLACE.match(line):
            found.append(Block(tuple(search), tuple(replace)))
            part = "outside"
        elif part != "outside" and (_SEARCH.match(line) or _REPLACE.match(line)):
            raise NoMatch(f"block {len(found) + 1} has no middle line or no last line")
        elif part == "search":
            search.append(line)
        elif part == "replace":
            replace.append(line)
    if part != "outside":
        raise NoMatch(f"block {len(found) + 1} has no last line")
    return tuple(found)


def applied(source: str, blocks: tuple[Block, ...]) -> str:
    """The source after all blocks, in their order. Raises NoMatch where one does not fit.

    Lines are matched exactly; where that finds nothing, without trailing spaces and with tabs as
    spaces; where that finds nothing, with another common indentation, which the replacement gets
    too.
    """
    lines = source.splitlines()
    for number, block in enumerate(blocks, start=1):
        lines = _with_block(lines, block, f"block {number}")
    return "\n".join(lines) + "\n"


def _with_block(lines: list[str], block: Block, name: str) -> list[str]:
    search = _without_blank_ends(block.search)
    if not search:
        raise NoMatch(f"{name} does not say which lines it replaces")
    for shift, places in (
        ("", _places(lines, search)),
        ("", _places(_even(lines), _even(search))),
        *_shifted(lines, search),
    ):
        if len(places) > 1:
            where = ", ".join(str(at + 1) for at in places[:4])
            raise NoMatch(f"{name} fits {len(places)} places (lines {where}): give more lines")
        if places:
            replacement = _indented(_without_blank_ends(block.replace), shift)
            return [*lines[: places[0]], *replacement, *lines[places[0] + len(search) :]]
    raise NoMatch(f"{name} was not found in the program{_near(lines, search)}")


def _without_blank_ends(lines: tuple[str, ...]) -> list[str]:
    """Without blank lines and fences at the ends, which models add and drop."""
    kept = list(lines)
    while kept and _is_blank(kept[0]):
        kept.pop(0)
    while kept and _is_blank(kept[-1]):
        kept.pop()
    return kept


def _is_blank(line: str) -> bool:
    return not line.strip() or _FENCE.match(line) is not None


def _places(lines: list[str], search: list[str]) -> list[int]:
    size = len(search)
    return [at for at in range(len(lines) - size + 1) if lines[at : at + size] == search]


def _even(lines: list[str]) -> list[str]:
    return [line.expandtabs(4).rstrip() for line in lines]


def _shifted(lines: list[str], search: list[str]) -> list[tuple[str, list[int]]]:
    """Places where the lines stand deeper or shallower; the shift is "+ " or "-" and its width."""
    even, wanted = _even(lines), _even(search)
    bare = [line.lstrip() for line in wanted]
    by_shift: dict[int, list[int]] = {}
    for at in range(len(even) - len(wanted) + 1):
        window = even[at : at + len(wanted)]
        if [line.lstrip() for line in window] != bare:
            continue
        depths = {_depth(w) - _depth(s) for w, s in zip(window, wanted, strict=True) if s}
        if len(depths) == 1:
            by_shift.setdefault(depths.pop(), []).append(at)
    places = [at for found in by_shift.values() for at in found]
    shift = next(iter(by_shift), 0)
    return [(f"{shift:+d}", sorted(places))]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _indented(lines: list[str], shift: str) -> list[str]:
    width = int(shift or 0)
    if width == 0:
        return lines
    even = [line.expandtabs(4) for line in lines]
    if width > 0:
        return [" " * width + line if line.strip() else line for line in even]
    return [line[min(-width, _depth(line)) :] for line in even]


def _near(lines: list[str], search: list[str]) -> str:
    """Where the line is that looks most like the block's first one, in words."""
    bare = [line.strip() for line in lines]
    close = difflib.get_close_matches(search[0].strip(), bare, n=1, cutoff=0.75)
    if not close or close[0] == search[0].strip():
        return ""
    return f"; line {bare.index(close[0]) + 1} reads {close[0][:80]!r}"

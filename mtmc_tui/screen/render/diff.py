"""Two versions of a source as rows of a diff, with the words that changed within a line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

CONTEXT_LINES = 3
ALIKE = 0.5
WORD = re.compile(r"\w+|\s+|[^\w\s]")
DEFINITION = re.compile(r"^\s*(?:def|class)\s+(\w+)")

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DiffRow:
    """One row: a hunk's head, or an old line, a new line, or both where they are the same.

    kind: "@" head, " " same, "-" only old, "+" only new, "~" old replaced by new (only in rows
          that are paired side by side).
    old, new: line numbers from 0; None where that side is empty.
    old_spans, new_spans: character ranges that differ within a replaced line.
    head: the definition that the hunk lies in.
    """

    kind: str
    old: int | None = None
    new: int | None = None
    old_spans: Spans = ()
    new_spans: Spans = ()
    head: str = ""


@lru_cache(maxsize=64)
def unified_rows(old: str, new: str) -> tuple[DiffRow, ...]:
    """Removed lines above added ones, with three lines of context."""
    return _split_pairs(paired_rows(old, new))


@lru_cache(maxsize=64)
def paired_rows(old: str, new: str) -> tuple[DiffRow, ...]:
    """Rows with the old line at the left and the new one at the right."""
    before, after = old.splitlines(), new.splitlines()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    rows: list[DiffRow] = []
    for hunk in matcher.get_grouped_opcodes(CONTEXT_LINES):
        rows.append(DiffRow("@", head=_enclosing(after, _first_change(hunk))))
        for tag, old_at, old_end, new_at, new_end in hunk:
            if tag == "equal":
                rows += [
                    DiffRow(" ", old_at + step, new_at + step) for step in range(old_end - old_at)
                ]
            else:
                rows += _changed(before, after, range(old_at, old_end), range(new_at, new_end))
    return tuple(rows)


def _split_pairs(rows: tuple[DiffRow, ...]) -> tuple[DiffRow, ...]:
    out: list[DiffRow] = []
    added: list[DiffRow] = []
    for row in rows:
        if row.kind == "~":
            out.append(DiffRow("-", old=row.old, old_spans=row.old_spans))
            added.append(DiffRow("+", new=row.new, new_spans=row.new_spans))
        elif row.kind == "+":
            added.append(row)
        elif row.kind == "-":
            out.append(row)
        else:
            out += [*added, row]
            added = []
    return tuple(out + added)


def _changed(before: list[str], after: list[str], old: range, new: range) -> list[DiffRow]:
    rows = []
    for step in range(max(len(old), len(new))):
        left = old[step] if step < len(old) else None
        right = new[step] if step < len(new) else None
        if left is not None and right is not None:
            spans = changed_words(before[left], after[right])
            rows.append(DiffRow("~", left, right, *spans))
        else:
            rows.append(DiffRow("+" if left is None else "-", left, right))
    return rows


def changed_words(old: str, new: str) -> tuple[Spans, Spans]:
    """Character ranges that differ between two lines; none where they have little in common."""
    before, after = WORD.findall(old), WORD.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < ALIKE:
        return (), ()
    old_spans, new_spans = [], []
    for tag, old_at, old_end, new_at, new_end in matcher.get_opcodes():
        if tag != "equal":
            old_spans.append((_length(before[:old_at]), _length(before[:old_end])))
            new_spans.append((_length(after[:new_at]), _length(after[:new_end])))
    return (
        tuple(span for span in old_spans if span[0] < span[1]),
        tuple(span for span in new_spans if span[0] < span[1]),
    )


def _length(words: list[str]) -> int:
    return sum(map(len, words))


def _first_change(hunk: list[tuple[str, int, int, int, int]]) -> int:
    return next((new_at for tag, _, _, new_at, _ in hunk if tag != "equal"), 0)


def _enclosing(lines: list[str], at: int) -> str:
    for line in reversed(lines[: at + 1]):
        found = DEFINITION.match(line)
        if found:
            return found.group(1)
    return ""

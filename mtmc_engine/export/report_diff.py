"""A step's change as an HTML table."""

from __future__ import annotations

from difflib import SequenceMatcher
from html import escape

CONTEXT = 3


def diff_table(before: str, after: str) -> str:
    """Unified diff with the line numbers of both sides; unchanged stretches are left out."""
    old, new = before.splitlines(), after.splitlines()
    rows: list[str] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if number:
            rows.append("<tr class='gap'><td></td><td></td><td>⋯</td></tr>")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                pairs = zip(range(i1, i2), range(j1, j2), strict=True)
                rows += [_row("", i + 1, j + 1, " ", old[i]) for i, j in pairs]
                continue
            rows += [_row("removed", i + 1, None, "-", old[i]) for i in range(i1, i2)]
            rows += [_row("added", None, j + 1, "+", new[j]) for j in range(j1, j2)]
    if not rows:
        return "<p>The source is the same.</p>"
    return f"<div class='wide'><table class='diff'>{''.join(rows)}</table></div>"


def _row(kind: str, old: int | None, new: int | None, sign: str, text: str) -> str:
    numbers = f"<td>{old or ''}</td><td>{new or ''}</td>"
    name = f" class='{kind}'" if kind else ""
    return f"<tr{name}>{numbers}<td>{sign} {escape(text)}</td></tr>"

"""Replies as models write them, with what must become of them.

`python tests/coder/recorded_replies.py > docs/replies.md` writes the table of reply shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mtmc_engine.coder.llm.reply import IMPORTS, Code, NoCode, read_reply

FOLDER = Path(__file__).parent / "replies"
BEFORE = (FOLDER / "before.txt").read_text()
ALL_IMPORTS = {**IMPORTS, "Model": "from op import Model"}


@dataclass(frozen=True)
class Recorded:
    """One file: a head of `key: value` lines, a line of three pluses, and the reply as it came."""

    name: str
    outcome: str
    finish: str
    thinking: str
    shape: str
    text: str

    def read(self) -> Code | NoCode:
        return read_reply(
            self.text, self.finish, BEFORE, thinking=self.thinking, imports=ALL_IMPORTS
        )


def recorded() -> list[Recorded]:
    return [_recorded(path) for path in sorted(FOLDER.glob("*.md"))]


def _recorded(path: Path) -> Recorded:
    head, _, body = path.read_bytes().decode().partition("+++\n")
    said = dict(line.split(": ", 1) for line in head.splitlines())
    return Recorded(
        path.stem,
        said["outcome"],
        said["finish"],
        said.get("thinking", ""),
        said["shape"],
        body.replace("@@BEFORE@@", BEFORE),
    )


OUTCOMES = ("code", "unusable", "length", "thinking", "empty", "filtered")
HEAD = """\
# Replies of language models

What becomes of a reply, by its shape: `code` is a candidate; `unusable` goes back to the model with
what is said; `length` and `thinking` are asked for again with twice the room, `empty` and
`filtered` once more as they were. Each line is a recorded reply of `tests/coder/replies`; the table
is written by `tests/coder/recorded_replies.py`.
"""


def table() -> str:
    """Markdown: the reply's shape, what became of it, and what was said."""
    lines = [HEAD, "| reply | outcome | said |", "|---|---|---|"]
    for reply in sorted(recorded(), key=lambda one: OUTCOMES.index(one.outcome)):
        found = reply.read()
        if isinstance(found, Code):
            lines.append(f"| {reply.shape} | code | {' '.join(found.notes)} |")
        else:
            lines.append(f"| {reply.shape} | {found.kind} | {found.reason} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())

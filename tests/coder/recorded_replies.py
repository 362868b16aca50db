"""Replies as models write them, with what must become of them.

`python tests/coder/recorded_replies.py` prints the table of reply shapes by outcome.
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


def table() -> str:
    """Markdown: the reply's shape, what became of it, and what was said."""
    lines = ["| reply | outcome | said |", "|---|---|---|"]
    for reply in recorded():
        found = reply.read()
        if isinstance(found, Code):
            lines.append(f"| {reply.shape} | code | {' '.join(found.notes)} |")
        else:
            lines.append(f"| {reply.shape} | {found.kind} | {found.reason} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())

"""One readable line per event: for screen readers, continuous integration and TERM=dumb."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from mtmc_engine.core.events import (
    AnyCommand,
    AnyEvent,
    ApproveAll,
    CandidateReady,
    Choice,
    Decide,
    Decided,
    DecisionNeeded,
    Export,
    Failed,
    Hint,
    Notice,
    PromptReady,
    ReplyPart,
    Send,
    Stop,
    encode,
)
from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import Engine
from mtmc_tui.displays.follow import follow, read_answers
from mtmc_tui.displays.words import lines_of

LETTERS: dict[str, Choice] = {
    "a": "approve",
    "r": "reject",
    "e": "edit",
    "s": "skip",
    "g": "retry",
    "S": "stop",
}
WORDS = {"approve": "[a]pprove", "reject": "[r]eject", "edit": "[e]dit", "skip": "[s]kip"}
WORDS |= {"retry": "[g] again", "stop": "[S]top"}
REFUSE_STOP = "[r]eject and take the next step"
OTHERS = "[A]pprove all, [h]int TEXT, [x] export"
STYLES = {"good": "green", "bad": "red", "weak": "dim", "strong": "bold"}


class PlainDisplay:
    """Lines on standard output; on a terminal, questions are answered by a typed letter."""

    def __init__(self, asks: bool) -> None:
        self._asks = asks
        self._print = _printer()
        self._engine: Engine | None = None
        self._question: DecisionNeeded | None = None
        self._unsent = False
        self._source = ""

    def begin(self, engine: Engine) -> None:
        """Read typed answers, or tell the engine that nobody will answer."""
        self._engine = engine
        if self._asks:
            read_answers(self._typed)
        else:
            engine.close_input()

    def show(self, event: AnyEvent) -> None:
        """Write the lines of an event; a failure goes to standard error."""
        if isinstance(event, Failed) or (isinstance(event, Notice) and event.level == "error"):
            print(event.text, file=sys.stderr)
            return
        if isinstance(event, CandidateReady):
            self._source = event.source
        for line, style in lines_of(event):
            self._print(line, style)
        if isinstance(event, Decided):
            self._question = None
        if isinstance(event, PromptReady | ReplyPart | CandidateReady | Decided):
            self._unsent = isinstance(event, PromptReady) and event.waits
        if self._unsent and isinstance(event, PromptReady) and self._asks:
            self._print("send this prompt? enter sends it; [s]kip, [S]top", "strong")
        if isinstance(event, DecisionNeeded) and self._asks:
            self._question = event
            self._print(_prompt(event), "strong")

    def _typed(self, line: bytes | None) -> None:
        assert self._engine is not None
        if line is None:
            self._engine.close_input()
            return
        letter, _, rest = line.decode(errors="replace").strip().partition(" ")
        if self._unsent and letter in ("", "s"):
            self._unsent = False
            self._engine.write_line(encode(Decide("skip") if letter else Send()))
            return
        command = self._command(letter, rest.strip())
        if command is not None:
            self._engine.write_line(encode(command))
        elif letter:
            self._print(f"'{letter}' is no answer here.", "weak")

    def _command(self, letter: str, rest: str) -> AnyCommand | None:
        others: dict[str, AnyCommand] = {
            "A": ApproveAll(),
            "h": Hint(rest),
            "x": Export(rest),
            "S": Stop(rest),
        }
        if letter in others:
            return others[letter]
        if self._question is None or LETTERS.get(letter) not in self._question.choices:
            return None
        choice = LETTERS[letter]
        if choice == "edit":
            return Decide("edit", self._question.node, rest, edited(self._source))
        return Decide(choice, self._question.node, rest)


def run_plain(options: RunOptions) -> int:
    """Run to the end: the exit code."""
    asks = sys.stdin.isatty() and not options.yes
    return asyncio.run(follow(options, PlainDisplay(asks)))


def edited(source: str) -> str:
    """The source after the user's editor ($VISUAL, $EDITOR or vi)."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="mtmc-edit-") as folder:
        path = Path(folder) / "candidate.py"
        path.write_text(source, encoding="utf-8")
        with contextlib.suppress(OSError):
            subprocess.run([*shlex.split(editor), str(path)], check=False)
        return path.read_text(encoding="utf-8")


def _prompt(question: DecisionNeeded) -> str:
    reason = f" ({question.suggestion_reason})" if question.suggestion_reason else ""
    known = WORDS | ({"reject": REFUSE_STOP} if question.action.kind == "stop" else {})
    words = ", ".join(known[choice] for choice in question.choices)
    about = "the coder cannot be asked for " if question.about == "coder" else ""
    return f"{about}{question.action.phrase}{reason}: {words}; {OTHERS}?"


def _printer() -> Callable[[str, str], None]:
    """How a line is written: in colour on a terminal."""
    if not sys.stdout.isatty():
        return lambda line, style: print(line, flush=True)
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    return lambda line, style: console.print(Text(line, STYLES.get(style, "")))

"""The terminal's title: it says when a question waits."""

from __future__ import annotations

from collections.abc import Callable

SAVE = "\x1b[22;0t"
RESTORE = "\x1b[23;0t"


def title_sequence(text: str) -> str:
    """The control sequence that sets the title; control characters in `text` are dropped."""
    clean = "".join(character for character in text if character.isprintable())
    return f"\x1b]2;{clean}\x07"


class TerminalTitle:
    """Sets the title through `write` when it changes, and puts the old one back."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._text = ""

    def show(self, text: str) -> None:
        """Set the title; nothing is written where it is the same."""
        if text == self._text:
            return
        self._write((SAVE if not self._text else "") + title_sequence(text))
        self._text = text

    def restore(self) -> None:
        """Put back what the terminal had."""
        if self._text:
            self._write(RESTORE)
            self._text = ""

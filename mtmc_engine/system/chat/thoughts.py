"""Telling a reply's leading <think> … </think> part from the answer, while it streams."""

from __future__ import annotations

_TAGS = ("think", "thinking", "thought")
_OPENING = {f"<{tag}>": f"</{tag}>" for tag in _TAGS}


class ThoughtSplitter:
    """Splits the slices of one reply. Only a tag that begins the reply counts: code may hold one.

    What could become a tag is held back until it is known.
    """

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._begun = False

    def feed(self, text: str) -> list[tuple[str, bool]]:
        """The (text, thinking) slices that are certain now."""
        self._held += text
        slices: list[tuple[str, bool]] = []
        if not self._begun:
            self._begin()
        if self._begun and self._closing:
            slices += self._think()
        if self._begun and not self._closing and self._held:
            slices.append((self._held, False))
            self._held = ""
        return slices

    def finish(self) -> list[tuple[str, bool]]:
        """What was held back at the end of the reply."""
        held, self._held = self._held, ""
        return [(held, bool(self._closing))] if held else []

    def _begin(self) -> None:
        text = self._held.lstrip()
        for opening, closing in _OPENING.items():
            if text.startswith(opening):
                self._held, self._closing, self._begun = text[len(opening) :], closing, True
                return
        self._begun = not any(opening.startswith(text) for opening in _OPENING)

    def _think(self) -> list[tuple[str, bool]]:
        thought, closing, rest = self._held.partition(self._closing)
        if closing:
            self._held, self._closing = rest, ""
        else:
            kept = overlap(thought, self._closing)
            thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
        return [(thought, True)] if thought else []


def overlap(text: str, word: str) -> int:
    """Length of the longest end of `text` that is a proper beginning of `word`."""
    for size in range(min(len(text), len(word) - 1), 0, -1):
        if text.endswith(word[:size]):
            return size
    return 0

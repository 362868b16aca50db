"""Gathering a streamed reply in a host: thoughts apart, the key out, slices in time, bounded."""

from __future__ import annotations

import time

from mtmc_engine.system.chat.scrub import Scrubber
from mtmc_engine.system.chat.thoughts import ThoughtSplitter
from mtmc_engine.system.chat.types import OnPart

# About half a million tokens, more than any model writes in one reply.
MOST_CHARACTERS = 2_000_000
_SLICE_S = 0.1


class TooLong(Exception):
    """The reply goes on beyond MOST_CHARACTERS."""


class Collector:
    """One reply as it comes. on_part: gets its slices, at least 0.1 s apart. secret: left out."""

    def __init__(self, on_part: OnPart, secret: str = "") -> None:
        self._on_part = on_part
        self._scrubber = Scrubber(secret)
        self._thinks = False
        self._splitter = ThoughtSplitter()
        self._whole: dict[bool, list[str]] = {True: [], False: []}
        self._characters = 0
        self._waiting: list[str] = []
        self._waiting_thinks = False
        self._told_at = 0.0

    @property
    def text(self) -> str:
        return "".join(self._whole[False])

    @property
    def thinking(self) -> str:
        return "".join(self._whole[True])

    def add(self, text: str) -> None:
        """Text that is the answer, or begins with tagged thoughts. Raises TooLong."""
        for piece, thinks in self._splitter.feed(text):
            self._scrub(piece, thinks)

    def add_thinking(self, text: str) -> None:
        """Text that the server marks as thinking. Raises TooLong."""
        self._scrub(text, True)

    def finish(self) -> None:
        """The reply is whole: hand on what was held back."""
        for piece, thinks in self._splitter.finish():
            self._scrub(piece, thinks)
        self._keep(self._scrubber.finish(), self._thinks)
        self._tell()

    def _scrub(self, text: str, thinks: bool) -> None:
        if thinks != self._thinks:
            self._keep(self._scrubber.finish(), self._thinks)
            self._thinks = thinks
        self._keep(self._scrubber.feed(text), thinks)

    def _keep(self, text: str, thinks: bool) -> None:
        if not text:
            return
        self._characters += len(text)
        if self._characters > MOST_CHARACTERS:
            raise TooLong
        self._whole[thinks].append(text)
        if thinks != self._waiting_thinks:
            self._tell()
        self._waiting.append(text)
        self._waiting_thinks = thinks
        if time.monotonic() - self._told_at >= _SLICE_S:
            self._tell()

    def _tell(self) -> None:
        if self._waiting:
            self._on_part("".join(self._waiting), self._waiting_thinks)
            self._waiting = []
            self._told_at = time.monotonic()

"""Keeping a key out of what leaves the host, should a server send it back."""

from __future__ import annotations

from mtmc_engine.system.chat.thoughts import overlap

HIDDEN = "[key]"


class Scrubber:
    """Replaces `secret` in texts; "" replaces nothing."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._held = ""

    def whole(self, text: str) -> str:
        """A whole text without the secret."""
        return text.replace(self._secret, HIDDEN) if self._secret else text

    def feed(self, text: str) -> str:
        """The same for slices of a stream; an end that could become the secret is held back."""
        if not self._secret:
            return text
        text = self.whole(self._held + text)
        kept = overlap(text, self._secret)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def finish(self) -> str:
        """What was held back at the end of the stream."""
        held, self._held = self._held, ""
        return held

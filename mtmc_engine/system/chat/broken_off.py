"""What a request used that ended without a whole reply: it is paid for like any other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.system.chat.estimate import tokens_of, tokens_of_text
from mtmc_engine.system.chat.types import Ask, Chat, ChatFailed, OnPart, Reply

# Endings of a request that a server had taken: it read the prompt, and may have written.
_TAKEN = frozenset({"reset", "timeout", "died", "protocol"})


@dataclass(frozen=True)
class BrokenOff:
    """A request without a whole reply. usage: estimated. text: what came of the reply."""

    usage: Usage
    seconds: float
    text: str
    why: str


class WatchedChat:
    """A chat that tells of each request that was taken and broken off, before it raises.

    What a server refused (HTTP errors) or never got (no connection) used nothing. local: the
    model is on this machine; a request of which nothing was heard may still have waited its turn.
    """

    def __init__(
        self, chat: Chat, on_broken_off: Callable[[BrokenOff], None], local: bool = False
    ) -> None:
        self.name, self.model, self.address = chat.name, chat.model, chat.address
        self._chat = chat
        self._on_broken_off = on_broken_off
        self._local = local

    @property
    def context(self) -> int | None:
        return self._chat.context

    async def ask(self, ask: Ask, on_part: OnPart) -> Reply:
        """One attempt. Raises ChatFailed."""
        heard: list[tuple[str, bool]] = []
        started = time.monotonic()

        def hear(text: str, thinking: bool) -> None:
            heard.append((text, thinking))
            on_part(text, thinking)

        def tell(why: str) -> None:
            usage = Usage(
                tokens_of(ask.messages),
                sum(tokens_of_text(text) for text, _ in heard),
                estimated=True,
            )
            answer = "".join(text for text, thinking in heard if not thinking)
            self._on_broken_off(BrokenOff(usage, time.monotonic() - started, answer, why))

        try:
            return await self._chat.ask(ask, hear)
        except ChatFailed as failed:
            taken = failed.status is None and failed.kind in _TAKEN and not self._local
            if heard or taken:
                tell(f"broken off: {failed}")
            raise
        except asyncio.CancelledError:
            if heard or not self._local:
                tell("cancelled")
            raise

    async def count(self, messages: Sequence[Message]) -> int | None:
        return await self._chat.count(messages)

    async def close(self) -> None:
        await self._chat.close()

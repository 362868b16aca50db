"""Tokens of a text where no tokenizer is at hand."""

from __future__ import annotations

from collections.abc import Sequence

from mtmc_engine.core.chat import Message

# Characters of Triton source a token: 2.4 to 2.9 with the bundled model's vocabulary of 49,152;
# larger vocabularies need fewer tokens.
_CHARACTERS = 3.0
_PER_MESSAGE = 4


def tokens_of_text(text: str) -> int:
    """Estimated tokens of `text`."""
    return round(len(text) / _CHARACTERS)


def tokens_of(messages: Sequence[Message]) -> int:
    """Estimated tokens of a prompt, with what frames each message."""
    return sum(tokens_of_text(message.content) + _PER_MESSAGE for message in messages)

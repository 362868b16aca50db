"""What is said to and by a language model, and what it costs in tokens."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Role = Literal["system", "user", "assistant"]


class Message(Struct, frozen=True):
    """One turn of a conversation, plain text."""

    role: Role
    content: str


class Usage(Struct, frozen=True):
    """Tokens of one request.

    cached: prompt tokens that the server had read before; reasoning: completion tokens spent on
    thinking; None where the server does not say.
    estimated: the server gave no usage and these were counted here.
    """

    prompt: int
    completion: int
    cached: int | None = None
    reasoning: int | None = None
    estimated: bool = False

"""What a language model is asked, what it replies and how it fails: the seam of all transports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.core.errors import MtmcError

# (text, thinking): slices of a reply as they come, at most ten a second.
OnPart = Callable[[str, bool], None]

FailureKind = Literal[
    "refused",
    "reset",
    "timeout",
    "unauthorised",
    "not_found",
    "too_large",
    "context",
    "rate_limited",
    "server",
    "bad_request",
    "died",
    "protocol",
]


class Ask(Struct, frozen=True):
    """One request for a completion.

    max_tokens, temperature, seed: None leaves the choice to the server.
    response_format: as Chat Completions has it, {"type": "json_schema", …}.
    timeout_s: for the whole reply, wall clock.
    """

    model: str
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    response_format: dict[str, Any] | None = None
    timeout_s: float = 600.0


class Reply(Struct, frozen=True):
    """A whole reply.

    text: the answer; thinking: what the model said to itself, where that can be told apart.
    finish: the server's reason, "stop", "length", "content_filter", …; "unstated" without one.
    usage: estimated where the server gave none.
    """

    text: str
    thinking: str
    finish: str
    usage: Usage | None
    seconds: float


class Failure(Struct, frozen=True):
    """Why there is no reply; sentence: what happened and what to do next, without any key.

    status: of HTTP. retry_after_s: what the server asks to wait.
    format_refused: the server objects to the response format.
    """

    kind: FailureKind
    sentence: str
    status: int | None = None
    retry_after_s: float | None = None
    format_refused: bool = False


class ChatFailed(MtmcError):
    """A language model gave no reply. `str()` is one sentence."""

    exit_code = 1

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.failure = failure

    @property
    def kind(self) -> FailureKind:
        return self.failure.kind

    @property
    def status(self) -> int | None:
        return self.failure.status

    @property
    def retry_after_s(self) -> float | None:
        return self.failure.retry_after_s


class RateLimited(ChatFailed):
    """The server asks to wait longer than is waited without asking the user."""


class Chat(Protocol):
    """A model that can be asked.

    name: as the user wrote it, "openai:gpt-5.4". model: its name at the server, for prices.
    address: where prompts go; shown, never with a key.
    context: tokens of prompt and reply together, None where unknown.
    """

    name: str
    model: str
    address: str

    @property
    def context(self) -> int | None: ...

    async def ask(self, ask: Ask, on_part: OnPart) -> Reply:
        """One attempt. Cancelling the task closes the stream. Raises ChatFailed."""
        ...

    async def count(self, messages: Sequence[Message]) -> int | None:
        """Tokens of a prompt, exact; None where the model is elsewhere. Raises ChatFailed."""
        ...

    async def close(self) -> None: ...


def nothing(text: str, thinking: bool) -> None:
    """An OnPart for those who only want the whole."""

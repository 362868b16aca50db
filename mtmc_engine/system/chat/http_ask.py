"""One streamed request to a server of Chat Completions. Imported only by the HTTP host."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from mtmc_engine.core.chat import Usage
from mtmc_engine.system.chat.collector import MOST_CHARACTERS, Collector, TooLong
from mtmc_engine.system.chat.endpoints import Endpoint
from mtmc_engine.system.chat.estimate import tokens_of, tokens_of_text
from mtmc_engine.system.chat.http_faults import Faults
from mtmc_engine.system.chat.scrub import Scrubber
from mtmc_engine.system.chat.types import Ask, ChatFailed, OnPart, Reply

# A token of a reply takes some 250 bytes of events.
MOST_BYTES = 64 << 20
MOST_ERROR_BYTES = 1 << 20
_CONNECT_S = 10.0
_UNKNOWN = re.compile(
    r"unsupported|not supported|not support|unrecognized|unrecognised|unknown|unexpected|extra"
    r"|not permitted|not allowed|forbidden",
    re.I,
)


class _Endless(Exception):
    """A body went past its limit."""


class _BoundedStream(httpx2.AsyncByteStream):
    """A response's body that may not grow without end; keeps its last bytes in `tail`."""

    def __init__(self, stream: httpx2.AsyncByteStream, most_bytes: int) -> None:
        self._stream = stream
        self._left = most_bytes
        self.tail = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            self._left -= len(data)
            if self._left < 0:
                raise _Endless
            self.tail = (self.tail + data)[-64:]
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    most = MOST_BYTES if response.is_success else MOST_ERROR_BYTES
    response.stream = _BoundedStream(response.stream, most)


class Server:
    """One endpoint and its open connections.

    The key is read from the environment here. transport: instead of the network.
    Options that the server once refused are left out from then on.
    """

    def __init__(
        self, endpoint: Endpoint, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self.endpoint = endpoint
        self._key = os.environ.get(endpoint.key_variable or "", "").strip()
        self._scrubber = Scrubber(self._key)
        self._refused: set[str] = set()
        self._client = openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=endpoint.base_url,
            max_retries=0,
            # A compressed body could grow past any limit on what is received.
            default_headers={"Accept-Encoding": "identity"},
            http_client=httpx2.AsyncClient(
                transport=transport,
                # A proxy of the environment does not lead to this machine's own network.
                trust_env=not endpoint.local,
                timeout=httpx2.Timeout(None, connect=_CONNECT_S),
                event_hooks={"response": [_bound]},
            ),
        )

    async def ask(self, ask: Ask, on_part: OnPart) -> Reply:
        """One attempt. Cancelling it closes the stream. Raises ChatFailed."""
        faults = Faults(self.endpoint, ask, self._scrubber.whole)
        if not self._key.isascii() or not self._key.isprintable():
            raise ChatFailed(faults.unusable_key())
        try:
            async with asyncio.timeout(ask.timeout_s):
                return await self._adapt(ask, on_part, faults)
        except ChatFailed:
            raise
        except _Endless:
            raise ChatFailed(faults.cut(f"{MOST_BYTES >> 20} MB")) from None
        except TooLong:
            raise ChatFailed(faults.cut(f"{MOST_CHARACTERS:,} characters")) from None
        except Exception as error:
            raise ChatFailed(faults.failure(error)) from None

    async def close(self) -> None:
        await self._client.close()

    async def _adapt(self, ask: Ask, on_part: OnPart, faults: Faults) -> Reply:
        """Ask; where the server does not know an option, ask at once again without it."""
        while True:
            options = self._options(ask)
            try:
                return await self._stream(ask, options, on_part, faults)
            except openai.APIStatusError as error:
                refused = _refused_option(error, options)
                if refused is None:
                    raise
                self._refused.add(refused)

    def _options(self, ask: Ask) -> dict[str, Any]:
        """The optional parameters, but those that this server refuses.

        OpenAI's own models know max_completion_tokens only, most other servers max_tokens only.
        """
        names = ["max_tokens", "max_completion_tokens"]
        if "//api.openai.com/" in self.endpoint.base_url:
            names.reverse()
        limit = next((name for name in names if name not in self._refused), None)
        options: dict[str, Any] = {
            "stream_options": {"include_usage": True},
            "temperature": ask.temperature,
            "seed": ask.seed,
            "response_format": ask.response_format,
        }
        if limit:
            options[limit] = ask.max_tokens
        return {
            name: value
            for name, value in options.items()
            if value is not None and name not in self._refused
        }

    async def _stream(
        self, ask: Ask, options: dict[str, Any], on_part: OnPart, faults: Faults
    ) -> Reply:
        began = time.monotonic()
        collector = Collector(on_part, self._key)
        finish, usage, chunks = "", None, 0
        stream = await self._open(ask, options)
        try:
            async for chunk in stream:
                chunks += 1
                finish = _take(chunk, collector) or finish
                usage = _usage(chunk) or usage
        finally:
            await stream.close()
        if not chunks:
            raise ChatFailed(faults.empty(stream.response.headers.get("content-type", "")))
        assert isinstance(stream.response.stream, _BoundedStream)
        if not finish and b"[DONE]" not in stream.response.stream.tail:
            raise ChatFailed(faults.broken())
        collector.finish()
        text, thinking = collector.text, collector.thinking
        if usage is None:
            usage = Usage(tokens_of(ask.messages), tokens_of_text(text + thinking), estimated=True)
        seconds = time.monotonic() - began
        return Reply(text, thinking, finish or "unstated", usage, seconds)

    async def _open(
        self, ask: Ask, options: dict[str, Any]
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        create: Any = self._client.chat.completions.create
        stream: openai.AsyncStream[ChatCompletionChunk] = await create(
            model=ask.model,
            messages=[{"role": one.role, "content": one.content} for one in ask.messages],
            stream=True,
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            **options,
        )
        return stream


def _take(chunk: ChatCompletionChunk, collector: Collector) -> str:
    """Collect what a chunk adds; its finish reason, "" without one."""
    if not chunk.choices:
        return ""
    choice = chunk.choices[0]
    if choice.delta is not None:
        extra = choice.delta.model_extra or {}
        for name in ("reasoning_content", "reasoning"):
            if isinstance(extra.get(name), str):
                collector.add_thinking(extra[name])
                break
        for text in (choice.delta.content, choice.delta.refusal):
            if isinstance(text, str):
                collector.add(text)
    return str(choice.finish_reason or "")


def _usage(chunk: ChatCompletionChunk) -> Usage | None:
    used = chunk.usage
    if used is None or not isinstance(used.prompt_tokens, int):
        return None
    cached = used.prompt_tokens_details and used.prompt_tokens_details.cached_tokens
    if cached is None:  # DeepSeek's name for it
        cached = (used.model_extra or {}).get("prompt_cache_hit_tokens")
    details = used.completion_tokens_details
    return Usage(
        used.prompt_tokens,
        used.completion_tokens or 0,
        cached if isinstance(cached, int) else None,
        details.reasoning_tokens if details else None,
    )


def _refused_option(error: openai.APIStatusError, options: dict[str, Any]) -> str | None:
    """The option that a server says it does not know; response_format is not ours to drop."""
    if error.status_code not in (400, 422):
        return None
    body: Any = error.body
    said = f"{error.code} {error.message} {body}"
    for name in options:
        named = error.param == name or re.search(rf"\b{name}\b", said)
        if name != "response_format" and named and _UNKNOWN.search(said):
            return name
    return None

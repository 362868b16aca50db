"""A model behind a server of Chat Completions; the HTTP lives in a child process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

import msgspec

from mtmc_engine.core.chat import Message
from mtmc_engine.core.errors import WorkerDied
from mtmc_engine.system.chat.endpoints import DEFAULT_URL, Endpoint, resolve
from mtmc_engine.system.chat.types import Ask, ChatFailed, Failure, OnPart, Reply
from mtmc_engine.system.child import JsonChild
from mtmc_engine.system.environment import without_secrets
from mtmc_engine.system.host_process import host_command

_HOST = "mtmc_engine.system.chat.http_host"
# Beyond the time of the request itself: the start of the child and of its libraries.
_SPARE_S = 30.0
# They may hold a name and password for the proxy.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_ACCOUNT = ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID")


class OpenAIChat:
    """`model` at `base_url`, by default $OPENAI_BASE_URL or OpenAI's own.

    The child is started at the first request, and again where it has died. Requests may overlap.
    Raises UsageError where the address cannot be used or its key is missing.
    """

    context: int | None = None

    def __init__(self, model: str, base_url: str | None = None) -> None:
        self.endpoint = resolve(model, base_url)
        self.name = f"openai:{model}"
        self.model = model
        self.address = self.endpoint.base_url
        self._child: JsonChild | None = None
        self._starting = asyncio.Lock()

    async def ask(self, ask: Ask, on_part: OnPart) -> Reply:
        """One attempt. Cancelling the task closes the stream. Raises ChatFailed."""
        request = {"endpoint": msgspec.to_builtins(self.endpoint), "ask": msgspec.to_builtins(ask)}
        try:
            child = await self._living_child()
            answer = await child.request(
                request, ask.timeout_s + _SPARE_S, lambda part: on_part(*part)
            )
        except WorkerDied as error:
            raise ChatFailed(Failure("died", f"{error} Ask again.")) from error
        except TimeoutError:
            sentence = f"The child process that asks {self.address} hung and was ended: ask again."
            raise ChatFailed(Failure("timeout", sentence)) from None
        if "failed" in answer:
            raise ChatFailed(msgspec.convert(answer["failed"], Failure))
        return msgspec.convert(answer["reply"], Reply)

    async def count(self, messages: Sequence[Message]) -> int | None:
        """None: the model's tokenizer is at the server."""
        return None

    async def close(self) -> None:
        if self._child is not None:
            await self._child.close()

    async def _living_child(self) -> JsonChild:
        async with self._starting:
            if self._child is None or not self._child.alive:
                self._child = JsonChild("HTTP host")
                await self._child.start(
                    host_command(_HOST), host_environment(os.environ, self.endpoint)
                )
            return self._child


def host_environment(environment: Mapping[str, str], endpoint: Endpoint) -> dict[str, str]:
    """What the child gets: the key of this endpoint and no other, the proxies, nothing that
    turns the openai package elsewhere or makes it talk.
    """
    kept = {
        name: value
        for name, value in without_secrets(environment).items()
        if not name.startswith("OPENAI_")
    }
    wanted = [*_PROXIES, endpoint.key_variable]
    if endpoint.base_url == DEFAULT_URL:
        wanted += _ACCOUNT
    return kept | {name: environment[name] for name in wanted if name and name in environment}

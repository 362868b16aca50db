"""What an endpoint can hold a reply to: a JSON schema, any JSON object, or nothing.

Probed once per endpoint and model, by a schema that the prompt does not give away, and kept in
the cache folder. Servers that refuse a format answer 400, 404, 422 or a 500 that names it; some
ignore it without a word.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from mtmc_engine.core.chat import Message
from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.chat.types import Ask, Chat, ChatFailed, OnPart, Reply, nothing
from mtmc_engine.system.paths import cache_folder, made

Rung = Literal["json_schema", "json_object", "plain"]
RUNGS: tuple[Rung, ...] = get_args(Rung)

_PROBE = "Reply in JSON with one object that says good morning."
_PROBE_SCHEMA = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}
# A model that thinks first needs room for it.
_PROBE_TOKENS = 1024
_PROBE_S = 120.0


class Capabilities:
    """The rungs of endpoints, remembered in a file of the cache folder.

    on_reply: hears of the probes' replies, since they cost tokens.
    """

    def __init__(
        self, folder: Path | None = None, on_reply: Callable[[Reply], None] | None = None
    ) -> None:
        self._folder = folder or cache_folder()
        self._file = self._folder / "chat-capabilities.json"
        self._on_reply = on_reply or (lambda reply: None)
        self._found: dict[str, Rung] = {}

    async def ask_json(
        self, chat: Chat, ask: Ask, schema: dict[str, Any], on_part: OnPart = nothing
    ) -> Reply:
        """One request whose reply is held to `schema` as far as the endpoint can.

        Below the first rung the schema stands in the prompt, and the reply may be anything.
        Raises ChatFailed.
        """
        rung = await self.rung(chat)
        while True:
            try:
                return await chat.ask(asked_on(rung, ask, schema), on_part)
            except ChatFailed as failed:
                if rung == "plain" or not refuses_format(failed):
                    raise
            rung = RUNGS[RUNGS.index(rung) + 1]
            self._remember(chat, rung)

    async def rung(self, chat: Chat) -> Rung:
        """The endpoint's highest rung, probed where it is not known yet. Raises ChatFailed."""
        known = self._known().get(_key(chat))
        if known is not None:
            return known
        for rung in RUNGS[:-1]:
            if await self._holds(chat, rung):
                break
        else:
            rung = "plain"
        self._remember(chat, rung)
        return rung

    async def _holds(self, chat: Chat, rung: Rung) -> bool:
        """Whether the probe's reply is what a rung promises."""
        ask = Ask(chat.model, (Message("user", _PROBE),), _PROBE_TOKENS, timeout_s=_PROBE_S)
        form = response_format(rung, _PROBE_SCHEMA)
        try:
            reply = await chat.ask(msgspec.structs.replace(ask, response_format=form), nothing)
        except ChatFailed as failed:
            if refuses_format(failed):
                return False
            raise
        self._on_reply(reply)
        with suppress(ValueError):
            value = json.loads(reply.text)
            return isinstance(value, dict) and (rung == "json_object" or list(value) == ["ready"])
        return False

    def _known(self) -> dict[str, Rung]:
        """Of this process, and of the file; what is lost there is probed again."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, Rung]) | self._found
        return self._found

    def _remember(self, chat: Chat, rung: Rung) -> None:
        self._found[_key(chat)] = rung
        with suppress(OSError, UsageError):  # a cache that cannot be written is done without
            made(self._folder)
            beside = self._file.with_suffix(f".{os.getpid()}")
            beside.write_bytes(msgspec.json.encode(self._known()))
            beside.replace(self._file)


def refuses_format(failed: ChatFailed) -> bool:
    """Whether a failure may be about the response format; the prompt's own faults are not."""
    failure = failed.failure
    if failure.format_refused:
        return True
    return failure.kind in ("bad_request", "not_found") and failure.status in (400, 404, 422)


def response_format(rung: Rung, schema: dict[str, Any]) -> dict[str, Any] | None:
    """The field of Chat Completions that asks for a rung."""
    if rung == "json_schema":
        return {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": schema},
        }
    return {"type": "json_object"} if rung == "json_object" else None


def asked_on(rung: Rung, ask: Ask, schema: dict[str, Any]) -> Ask:
    """The request on one rung. Below the first the last message says what the reply must be."""
    messages = ask.messages
    if rung != "json_schema":
        wish = f"Reply with one JSON object of this schema and nothing else:\n{json.dumps(schema)}"
        last = messages[-1]
        messages = (*messages[:-1], Message(last.role, f"{last.content}\n\n{wish}"))
    return msgspec.structs.replace(
        ask, messages=messages, response_format=response_format(rung, schema)
    )


def _key(chat: Chat) -> str:
    return f"{chat.model} {chat.address}"

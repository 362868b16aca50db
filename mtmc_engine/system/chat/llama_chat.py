"""A model file on this machine; llama.cpp lives in a child process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.core.chat import Message
from mtmc_engine.core.errors import WorkerDied
from mtmc_engine.system.chat.llama_memory import context_tokens, free_memory_bytes
from mtmc_engine.system.chat.types import Ask, ChatFailed, Failure, OnPart, Reply
from mtmc_engine.system.child import JsonChild
from mtmc_engine.system.environment import without_secrets
from mtmc_engine.system.host_process import host_command
from mtmc_engine.system.model_file import check_gguf

_HOST = "mtmc_engine.system.chat.llama_host"
_LOAD_S = 300.0
_COUNT_S = 60.0
# Reading a long prompt cannot be interrupted: a child that does not stop soon is killed.
_STOP_S = 2.0
_MOST_THREADS = 8
# Threads that wait give their core away, also to what is proven beside them.
_PATIENT = {"OMP_WAIT_POLICY": "passive"}


class LlamaChat:
    """A model file, loaded into a child process at the first need, and again where it has died.

    Requests are served one after the other. Raises UsageError for a file that cannot be used, or
    that does not fit the free memory.
    """

    def __init__(self, path: Path | str, threads: int = 0) -> None:
        path = Path(path).absolute()
        facts = check_gguf(path)
        self.name = f"llama:{path.name}"
        self.model = path.name
        self.address = str(path)
        self.context: int | None = context_tokens(facts, free_memory_bytes())
        self._threads = threads or min(_MOST_THREADS, len(os.sched_getaffinity(0)))
        self._child: JsonChild | None = None
        self._starting = asyncio.Lock()
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, ask: Ask, on_part: OnPart) -> Reply:
        """One attempt; its time begins when it is its turn. Cancelling the task ends it in the
        child, by force where it is reading the prompt. Raises ChatFailed.
        """
        async with self._one_at_a_time:
            await self._living_child()
            try:
                async with asyncio.timeout(ask.timeout_s):
                    request = {"ask": msgspec.to_builtins(ask)}
                    answer = await self._request(request, None, lambda part: on_part(*part))
            except TimeoutError:
                sentence = (
                    f"{self.model} did not finish its reply within {ask.timeout_s:g} s: allow "
                    "more time, or use a smaller model."
                )
                raise ChatFailed(Failure("timeout", sentence)) from None
        return msgspec.convert(answer["reply"], Reply)

    async def count(self, messages: Sequence[Message]) -> int | None:
        """Tokens of a prompt with the model's own tokenizer and template. Raises ChatFailed."""
        await self._living_child()
        answer = await self._request({"count": msgspec.to_builtins(tuple(messages))}, _COUNT_S)
        return int(answer["tokens"])

    async def close(self) -> None:
        if self._child is not None:
            await self._child.close()

    async def _request(
        self,
        request: dict[str, Any],
        timeout_s: float | None,
        on_part: Callable[[Any], None] | None = None,
    ) -> dict[str, Any]:
        assert self._child is not None
        try:
            answer = await self._child.request(request, timeout_s, on_part, _STOP_S)
        except WorkerDied as error:
            raise ChatFailed(Failure("died", f"{error} Ask again.")) from error
        if "failed" in answer:
            raise ChatFailed(msgspec.convert(answer["failed"], Failure))
        return answer

    async def _living_child(self) -> None:
        async with self._starting:
            if self._child is not None and self._child.alive:
                return
            self._child = JsonChild("llama host")
            await self._child.start(host_command(_HOST), _PATIENT | without_secrets(os.environ))
            load = {"path": self.address, "n_ctx": self.context, "threads": self._threads}
            try:
                answer = await self._request({"load": load}, _LOAD_S)
            except TimeoutError:
                sentence = f"{self.model} did not load within {_LOAD_S:g} s: use a smaller model."
                raise ChatFailed(Failure("died", sentence)) from None
            except (ChatFailed, asyncio.CancelledError):
                await self._child.kill()
                raise
            self.context = int(answer["n_ctx"])

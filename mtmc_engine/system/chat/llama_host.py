"""The llama host: a child process that holds one model file for asking.

Reads requests and writes replies, one JSON object a line:

    {"id", "load": {"path", "n_ctx", "threads"}} -> {"id", "n_ctx"}
    {"id", "count": [messages]}                  -> {"id", "tokens"}
    {"id", "ask": {…}}                           -> any {"id", "part": [text, thinking]}, then
                                                    {"id", "reply"}
    {"cancel": id}                               -> that request ends at its next token

Instead of an answer there may be {"id", "failed"}, and {"id", "cancelled"} for what was cancelled.
Requests are served in order, but `count` at once. The end of standard input ends the process.
"""

from __future__ import annotations

import os
import queue
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from msgspec import Struct

from mtmc_engine.core.chat import Message
from mtmc_engine.system.chat.types import Ask, ChatFailed, Failure
from mtmc_engine.system.host_process import Streams, private_streams

if TYPE_CHECKING:
    from mtmc_engine.system.chat.llama_model import LlamaModel


class Load(Struct, frozen=True):
    """A checked model file. n_ctx: tokens of its context."""

    path: str
    n_ctx: int
    threads: int


class Request(Struct, frozen=True):
    """Exactly one of the last four is given."""

    id: int = 0
    cancel: int = 0
    load: Load | None = None
    count: tuple[Message, ...] | None = None
    ask: Ask | None = None


class Host:
    """The model and its requests. The reader thread takes them in, the main thread serves them."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._writing = threading.Lock()
        self._queue: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._model: LlamaModel | None = None

    def serve(self) -> NoReturn:
        """Answer requests until standard input ends; then end the process at once."""
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            request = self._queue.get()
            self._answer(request)
            self._cancelled.discard(request.id)

    def _read(self) -> NoReturn:
        decode = msgspec.json.Decoder(Request).decode
        for line in self._streams.requests:
            request = decode(line)
            if request.cancel:
                self._cancelled.add(request.cancel)
            elif request.count is not None and self._model is not None:
                self._answer(request)
            else:
                self._queue.put(request)
        os._exit(0)

    def _answer(self, request: Request) -> None:
        try:
            answer = self._served(request)
        except ChatFailed as failed:
            answer = {"failed": failed.failure}
        if request.id in self._cancelled:
            answer = {"cancelled": True}
        self._write(request.id, answer)

    def _served(self, request: Request) -> dict[str, Any]:
        if request.load is not None:
            self._model = _loaded(request.load)
            return {"n_ctx": self._model.n_ctx}
        assert self._model is not None
        if request.count is not None:
            return {"tokens": len(self._model.tokens(request.count))}
        assert request.ask is not None

        def on_part(text: str, thinking: bool) -> None:
            self._write(request.id, {"part": (text, thinking)})

        def stopped() -> bool:
            return request.id in self._cancelled

        return {"reply": self._model.ask(request.ask, on_part, stopped)}

    def _write(self, number: int, answer: dict[str, Any]) -> None:
        with self._writing:
            self._streams.replies.write(msgspec.json.encode({"id": number, **answer}) + b"\n")
            self._streams.replies.flush()


def _loaded(load: Load) -> LlamaModel:
    """Raises ChatFailed, also where the package is missing."""
    try:
        from mtmc_engine.system.chat.llama_model import LlamaModel
    except (ImportError, OSError, RuntimeError) as error:
        sentence = f"llama.cpp cannot be used ({error}): pip install llama-cpp-python."
        raise ChatFailed(Failure("died", sentence)) from error
    return LlamaModel(load.path, load.n_ctx, load.threads)


def main() -> int:
    """Serve on standard input and output."""
    Host(private_streams()).serve()

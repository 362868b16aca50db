"""The HTTP host: a child process that holds the openai package and the connections.

Reads requests and writes replies, one JSON object a line:

    {"id", "endpoint", "ask"} -> any {"id", "part": [text, thinking]}, then {"id", "reply"} or
                                 {"id", "failed"}
    {"cancel": id}            -> closes that stream; its request is answered {"id", "cancelled"}

The end of standard input ends the process. Keys come from its environment and leave it only for
their server.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from msgspec import Struct

from mtmc_engine.system.chat.endpoints import Endpoint
from mtmc_engine.system.chat.types import Ask, ChatFailed, Failure
from mtmc_engine.system.host_process import Streams, private_streams

if TYPE_CHECKING:
    from mtmc_engine.system.chat.http_ask import Server


class Request(Struct, frozen=True):
    """Ask an endpoint, or cancel a request."""

    id: int = 0
    cancel: int = 0
    endpoint: Endpoint | None = None
    ask: Ask | None = None


class Host:
    """The requests in flight, each a task."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._servers: dict[Endpoint, Server] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Answer requests until standard input ends; then end the process at once."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()
        await asyncio.Event().wait()

    def _read(self, loop: asyncio.AbstractEventLoop) -> NoReturn:
        decode = msgspec.json.Decoder(Request).decode
        for line in self._streams.requests:
            loop.call_soon_threadsafe(self._receive, decode(line))
        os._exit(0)

    def _receive(self, request: Request) -> None:
        if request.cancel:
            if request.cancel in self._tasks:
                self._tasks[request.cancel].cancel()
            return
        self._tasks[request.id] = asyncio.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            answer = await self._ask(request)
        except asyncio.CancelledError:
            answer = {"cancelled": True}
        del self._tasks[request.id]
        self._write(request.id, answer)

    async def _ask(self, request: Request) -> dict[str, Any]:
        assert request.endpoint is not None
        assert request.ask is not None

        def on_part(text: str, thinking: bool) -> None:
            self._write(request.id, {"part": (text, thinking)})

        try:
            reply = await self._server(request.endpoint).ask(request.ask, on_part)
        except ChatFailed as failed:
            return {"failed": failed.failure}
        return {"reply": reply}

    def _server(self, endpoint: Endpoint) -> Server:
        """The connections to an endpoint. Raises ChatFailed where the package is missing."""
        try:
            from mtmc_engine.system.chat.http_ask import Server
        except ImportError as error:
            sentence = f"The openai package cannot be used ({error}): pip install 'openai>=3'."
            raise ChatFailed(Failure("died", sentence)) from error
        if endpoint not in self._servers:
            self._servers[endpoint] = Server(endpoint)
        return self._servers[endpoint]

    def _write(self, number: int, answer: dict[str, Any]) -> None:
        self._streams.replies.write(msgspec.json.encode({"id": number, **answer}) + b"\n")
        self._streams.replies.flush()


def main() -> int:
    """Serve on standard input and output."""
    asyncio.run(Host(private_streams()).serve())
    return 0

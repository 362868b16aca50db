"""A server that speaks Chat Completions over real HTTP and answers from a script of replies.

In a test:

    with ReplayServer(SCRIPT) as server:          # SCRIPT: TOML text, a dict, or a Path
        ... --coder openai:replay@{server.base_url} ...
        server.chats                              # the requests that came in, oldest first
        server.play(ANOTHER)                      # go on with another script

By hand: `python tests/replay_server/replay_server.py script.toml [--port N]` prints its base URL.

The script is TOML (or JSON, where the file's name ends so). At the top level, all optional:

    model = "replay"           name in GET /v1/models; any model asked for is answered
    key = "…"                  requests without this bearer key get 401
    json_schema = false        response_format json_schema gets a 500 that names it
    json_object = false        response_format json_object gets a 400 that names it
    stream_options = false     stream_options gets a 400 that names it, and no usage is ever sent

Then replies. Each request takes the first [[reply]] that still has `times` left and whose `when`
fits; where none is left the answer is 400 "no reply left". All keys are optional:

    when = "fuse r2"           only for prompts that contain this (a list: all of these)
    times = 1                  how many requests it answers; 0: any number
    text = "…"                 the reply's text; or file = "reply.md" beside the script
    thinking = "…"             sent before it as reasoning_content
    finish = "stop"            "length", "content_filter", …; "" sends none
    usage = true               false: none is sent; a table {prompt=, completion=, cached=,
                               reasoning=}: these numbers; true: counted, one token per 4 characters
    chunk = 24                 characters a piece
    first_pause_s = 0.0        before the first byte
    pause_s = 0.0              between pieces
    cut_after = 100            the connection is reset after so many characters of text
    endless = true             the text is repeated without end
    raw = "data: {oops\\n\\n"   these bytes are the whole body of a 200
    status = 429               an error instead, with:
    error = "…"                  its message,  code = "…"  its code,
    retry_after = "2"            and the header Retry-After: seconds or an HTTP date

Recorded kinds, as one line each: good {text}, malformed {raw}, slow {pause_s}, cut off
{cut_after}, rate-limited {status=429, retry_after}, empty {text=""}, length {finish="length"},
content filter {text="", finish="content_filter"}, thinking only {thinking, text=""}.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import threading
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path
from typing import Any


@dataclass
class Reply:
    """One [[reply]] of a script."""

    when: str | list[str] = ""
    times: int = 1
    text: str = ""
    file: str = ""
    thinking: str = ""
    finish: str = "stop"
    usage: bool | dict[str, int] = True
    chunk: int = 24
    first_pause_s: float = 0.0
    pause_s: float = 0.0
    cut_after: int | None = None
    endless: bool = False
    raw: str | None = None
    status: int = 200
    error: str = "scripted error"
    code: str | None = None
    retry_after: str = ""
    used: int = 0

    def fits(self, prompt: str) -> bool:
        wanted = [self.when] if isinstance(self.when, str) else self.when
        return (self.times == 0 or self.used < self.times) and all(w in prompt for w in wanted)


@dataclass
class Script:
    """A whole script. Raises TypeError for an unknown key."""

    model: str = "replay"
    key: str = ""
    json_schema: bool = True
    json_object: bool = True
    stream_options: bool = True
    reply: list[Reply] = field(default_factory=list)

    @classmethod
    def load(cls, source: str | Path | dict[str, Any]) -> Script:
        folder = source.parent if isinstance(source, Path) else Path()
        if isinstance(source, Path):
            text = source.read_text(encoding="utf-8")
            source = json.loads(text) if source.suffix == ".json" else text
        table = tomllib.loads(source) if isinstance(source, str) else dict(source)
        replies = [Reply(**one) for one in table.pop("reply", [])]
        for one in replies:
            if one.file:
                one.text = (folder / one.file).read_text(encoding="utf-8")
        return cls(**table, reply=replies)


@dataclass(frozen=True)
class Request:
    """What came in. headers: names in lower case. finished: the whole answer was taken."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at_s: float
    outcome: list[str] = field(default_factory=list)

    @property
    def prompt(self) -> str:
        """The contents of all messages, one after the other."""
        return "\n".join(str(message["content"]) for message in self.body.get("messages", ()))

    @property
    def finished(self) -> bool:
        return self.outcome == ["finished"]


class ReplayServer:
    """Serves a script on loopback from threads of its own; `with` starts and stops it.

    outcome of a request: "finished", "cut" (by the script) or "left" (the client went away).
    """

    def __init__(self, script: str | Path | dict[str, Any], port: int = 0) -> None:
        self.script = Script.load(script)
        self.requests: list[Request] = []
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self._http = _Http(self, port)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def start(self) -> ReplayServer:
        self._thread.start()
        return self

    def play(self, script: str | Path | dict[str, Any]) -> None:
        """Answer from another script, with no request seen yet."""
        self.script = Script.load(script)
        self.requests.clear()

    def stop(self) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    __enter__ = start

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def chats(self) -> list[Request]:
        """Requests for a completion."""
        return [one for one in self.requests if one.path.endswith("/chat/completions")]

    def take(self, prompt: str) -> Reply | None:
        """The next reply for a prompt."""
        with self.lock:
            for reply in self.script.reply:
                if reply.fits(prompt):
                    reply.used += 1
                    return reply
        return None


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, replay: ReplayServer, port: int) -> None:
        self.replay = replay
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._record({})
        script = self.server.replay.script
        if self._refuse_key(script):
            return
        if self.path.endswith("/models"):
            self._json(200, {"object": "list", "data": [{"id": script.model, "object": "model"}]})
        else:
            self._error(404, "no such path")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        request = self._record(body)
        script = self.server.replay.script
        if self._refuse_key(script) or self._refuse_options(script, body):
            return
        if not self.path.endswith("/chat/completions"):
            self._error(404, "no such path")
            return
        reply = self.server.replay.take(request.prompt)
        if reply is None:
            self._error(400, "no reply left in the script for this prompt")
            return
        self._wait(reply.first_pause_s)
        if reply.status != 200:
            headers = {"Retry-After": reply.retry_after} if reply.retry_after else {}
            self._error(reply.status, reply.error, reply.code, headers)
            return
        try:
            request.outcome.append(self._stream(script, reply, request))
        except OSError:
            request.outcome.append("left")
            self.close_connection = True

    def _record(self, body: dict[str, Any]) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, body, time.monotonic())
        self.server.replay.requests.append(request)
        return request

    def _refuse_key(self, script: Script) -> bool:
        wrong = bool(script.key) and self.headers.get("Authorization") != f"Bearer {script.key}"
        if wrong:
            given = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            self._error(401, f"Incorrect API key provided: {given}", "invalid_api_key")
        return wrong

    def _refuse_options(self, script: Script, body: dict[str, Any]) -> bool:
        kind = (body.get("response_format") or {}).get("type")
        if kind == "json_schema" and not script.json_schema:
            self._error(500, "response_format: Input should be 'text' or 'json_object'")
        elif kind == "json_object" and not script.json_object:
            self._error(400, "response_format is not supported")
        elif "stream_options" in body and not script.stream_options:
            self._error(400, "Unrecognized request argument supplied: stream_options")
        else:
            return False
        return True

    def _stream(self, script: Script, reply: Reply, request: Request) -> str:
        whole = not request.body.get("stream")
        if whole and reply.raw is None:
            self._json(200, _completion(script, reply, request))
            return "finished"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if reply.raw is not None:
            if reply.raw:
                self._piece(reply.raw.encode())
            self._piece(b"")
            return "finished"
        sent = 0
        for delta in _deltas(reply):
            text = delta.get("content", "")
            room = None if reply.cut_after is None else max(0, reply.cut_after - sent)
            if room is not None and room < len(text):
                self._event(script, {"content": text[:room]})
                self._reset()
                return "cut"
            self._event(script, delta)
            sent += len(text)
            self._wait(reply.pause_s)
            if self.server.replay.stopping.is_set():
                self._reset()
                return "cut"
        if reply.finish:
            self._event(script, {}, reply.finish)
        options = request.body.get("stream_options") or {}
        if reply.usage is not False and options.get("include_usage"):
            self._event(script, None, usage=_usage(reply, request))
        self._piece(b"data: [DONE]\n\n")
        self._piece(b"")
        return "finished"

    def _event(
        self,
        script: Script,
        delta: dict[str, str] | None,
        finish: str | None = None,
        usage: dict[str, Any] | None = None,
    ) -> None:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        event = {**_head(script, "chat.completion.chunk"), "choices": choices, "usage": usage}
        self._piece(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _piece(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _reset(self) -> None:
        """Leave with a TCP reset; an orderly shutdown would come before it in `finish`."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())
        self.close_connection = True

    def _wait(self, seconds: float) -> None:
        if seconds:
            self.server.replay.stopping.wait(seconds)

    def _error(
        self,
        status: int,
        message: str,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        error = {"message": message, "type": "replay", "param": None, "code": code}
        self._json(status, {"error": error}, headers or {})

    def _json(
        self, status: int, value: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _deltas(reply: Reply) -> Iterator[dict[str, str]]:
    yield {"role": "assistant", "content": ""}
    for piece in _pieces(reply.thinking, reply.chunk):
        yield {"reasoning_content": piece}
    rounds = repeat(reply.text or " ") if reply.endless else [reply.text]
    for piece in chain.from_iterable(_pieces(text, reply.chunk) for text in rounds):
        yield {"content": piece}


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _head(script: Script, kind: str) -> dict[str, Any]:
    return {"id": "replay-1", "object": kind, "created": 0, "model": script.model}


def _usage(reply: Reply, request: Request) -> dict[str, Any]:
    given = reply.usage if isinstance(reply.usage, dict) else {}
    prompt = given.get("prompt", len(request.prompt) // 4)
    completion = given.get("completion", (len(reply.text) + len(reply.thinking)) // 4)
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if "cached" in given:
        usage["prompt_tokens_details"] = {"cached_tokens": given["cached"]}
    if "reasoning" in given:
        usage["completion_tokens_details"] = {"reasoning_tokens": given["reasoning"]}
    return usage


def _completion(script: Script, reply: Reply, request: Request) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish or None}
    usage = None if reply.usage is False else _usage(reply, request)
    return {**_head(script, "chat.completion"), "choices": [choice], "usage": usage}


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve recorded replies on loopback.")
    parser.add_argument("script", type=Path)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    with ReplayServer(arguments.script, arguments.port) as server:
        print(server.base_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()

"""What can go wrong between the HTTP host and a server, by the library's own mock transport."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import httpx2
import pytest

from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.system.chat import http_ask
from mtmc_engine.system.chat.endpoints import Endpoint
from mtmc_engine.system.chat.http_ask import Server
from mtmc_engine.system.chat.types import Ask, ChatFailed, nothing

URL = "https://models.example/v1"
KEY = "sk-very-secret-0123456789"
ASK = Ask("m-1", (Message("user", "Make it fast."),), timeout_s=5.0)
SCHEMA = {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object"}}}


class Body(httpx2.AsyncByteStream):
    """Pieces of bytes; a piece that is an exception is raised, a number is seconds of silence."""

    def __init__(self, *pieces):
        self.pieces = pieces
        self.closed = False

    async def __aiter__(self):
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, float):
                await asyncio.sleep(piece)
            else:
                yield piece

    async def aclose(self):
        self.closed = True


class Forever(Body):
    async def __aiter__(self):
        while True:
            await asyncio.sleep(0)
            yield self.pieces[0]


def event(content=None, finish=None, usage=None, **delta):
    delta = delta if content is None else {"content": content, **delta}
    choices = [] if usage else [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m-1"}
    return b"data: " + json.dumps({**head, "choices": choices, "usage": usage}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
USED = event(usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})


def stream(*pieces, status=200, **headers):
    body = pieces[0] if isinstance(pieces[0], Body) else Body(*pieces)
    headers = {"content-type": "text/event-stream"} | headers
    return httpx2.Response(status, headers=headers, stream=body)


def problem(status, message="it says no", code=None, param=None, **headers):
    error = {"message": message, "type": "t", "code": code, "param": param}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, json={"error": error}, headers=names)


@pytest.fixture
def server(monkeypatch):
    """A function from answers, one for each request, to a Server; `seen` holds the requests."""
    monkeypatch.setenv("MODELS_KEY", KEY)

    def make(*answers, key_variable="MODELS_KEY", url=URL, local=False):
        left = list(answers)

        def handle(request):
            made.seen.append(request)
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        made = Server(Endpoint("m-1", url, key_variable, local), httpx2.MockTransport(handle))
        made.seen = []
        return made

    return make


async def failure(server, ask=ASK):
    with pytest.raises(ChatFailed) as caught:
        await server.ask(ask, nothing)
    sentence = str(caught.value)
    assert KEY not in repr(caught.value.failure)
    assert "models.example" in sentence or "MODELS_KEY" in sentence
    assert "\n" not in sentence
    assert len(sentence) < 500
    assert sentence.endswith(".")
    return caught.value


async def test_a_whole_reply(server):
    parts = []
    asked = server(stream(event("hello "), event("world"), event(finish="stop"), USED, DONE))
    reply = await asked.ask(ASK, lambda *part: parts.append(part))
    assert (reply.text, reply.finish, reply.usage) == ("hello world", "stop", Usage(7, 3))
    assert "".join(text for text, _ in parts) == "hello world"
    body = json.loads(asked.seen[0].content)
    assert body["stream"]
    assert body["stream_options"] == {"include_usage": True}
    assert "max_tokens" not in body
    assert asked.seen[0].headers["authorization"] == f"Bearer {KEY}"


async def test_no_server(server):
    refused = httpx2.ConnectError("[Errno 111] Connection refused")
    failed = await failure(server(refused))
    assert failed.kind == "refused"
    assert f"No server answers at {URL}" in str(failed)


async def test_an_unknown_host(server):
    unknown = httpx2.ConnectError("[Errno -2] Name or service not known")
    unknown.__cause__ = socket.gaierror(-2, "Name or service not known")
    failed = await failure(server(unknown))
    assert failed.kind == "refused"
    assert "not known" in str(failed)


async def test_a_reset_amid_the_reply(server):
    failed = await failure(server(stream(event("half a "), httpx2.ReadError("reset"))))
    assert failed.kind == "reset"


async def test_an_end_without_a_reason_to_finish(server):
    failed = await failure(server(stream(event("half a "))))
    assert failed.kind == "reset"


async def test_the_word_done_is_an_end_too(server):
    reply = await server(stream(event("whole"), DONE)).ask(ASK, nothing)
    assert (reply.text, reply.finish) == ("whole", "unstated")


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_named_and_never_shown(server, status):
    answer = problem(status, f"Incorrect API key provided: {KEY}", "invalid_api_key")
    failed = await failure(server(answer))
    assert (failed.kind, failed.status) == ("unauthorised", status)
    assert "MODELS_KEY" in str(failed)


async def test_a_server_that_wants_a_key_and_got_none(server):
    failed = await failure(server(problem(401), key_variable=None, local=True))
    assert "MTMC_LOCAL_API_KEY" in str(failed)


async def test_a_key_of_several_lines_is_not_sent(server, monkeypatch):
    monkeypatch.setenv("MODELS_KEY", f"{KEY}\nexport OTHER=1")
    asked = server(problem(401))
    failed = await failure(asked)
    assert failed.kind == "unauthorised"
    assert asked.seen == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "bad_request"),
        (402, "unauthorised"),
        (404, "not_found"),
        (408, "server"),
        (413, "too_large"),
        (422, "bad_request"),
        (500, "server"),
        (503, "server"),
        (529, "server"),
    ],
)
async def test_the_kind_of_a_status(server, status, kind):
    failed = await failure(server(problem(status)))
    assert (failed.kind, failed.status) == (kind, status)
    assert f"HTTP {status}" in str(failed)


async def test_what_a_server_says_is_quoted_without_keys_and_controls(server):
    said = f"your key {KEY} is\n\x1b[31mred\x07 " + "x" * 5000
    sentence = str(await failure(server(problem(500, said))))
    assert "your key [key] is" in sentence
    assert "\x1b" not in sentence


async def test_a_page_instead_of_an_error(server):
    page = httpx2.Response(502, text="<html>Bad gateway</html>")
    failed = await failure(server(page))
    assert (failed.kind, failed.status) == ("server", 502)


async def test_a_redirect_is_not_followed(server):
    asked = server(httpx2.Response(307, headers={"location": "https://elsewhere.example/v1"}))
    failed = await failure(asked)
    assert "redirects" in str(failed)
    assert len(asked.seen) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry_after": "17"}, 17),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "2"}, 1.5),
        (
            {
                "retry_after": "Mon, 30 Nov 2026 21:00:30 GMT",
                "date": "Mon, 30 Nov 2026 21:00:00 GMT",
            },
            30,
        ),
        (
            {
                "retry_after": "Mon, 30 Nov 2026 21:00:00 GMT",
                "date": "Mon, 30 Nov 2026 21:00:30 GMT",
            },
            0,
        ),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-5"}, 0),
        ({"retry_after": "inf"}, None),
    ],
)
async def test_rate_limits(server, headers, seconds):
    failed = await failure(server(problem(429, **headers)))
    assert (failed.kind, failed.retry_after_s) == ("rate_limited", seconds)


async def test_a_date_without_the_servers_own(server):
    failed = await failure(server(problem(429, retry_after="Fri, 31 Dec 2999 23:59:59 GMT")))
    assert failed.retry_after_s > 1e9


async def test_an_empty_account_is_no_rate_limit(server):
    failed = await failure(server(problem(429, "You exceeded", "insufficient_quota")))
    assert failed.kind == "unauthorised"


@pytest.mark.parametrize(
    "answer",
    [
        problem(400, "This model's maximum context length is 8192 tokens."),
        problem(400, "too long", "context_length_exceeded"),
        stream(b'data: {"error": {"message": "the request exceeds the context size"}}\n\n'),
    ],
)
async def test_a_prompt_beyond_the_context(server, answer):
    assert (await failure(server(answer))).kind == "context"


@pytest.mark.parametrize(("said", "kind"), [("boom", "server"), ("Rate limit", "rate_limited")])
async def test_an_error_amid_the_stream(server, said, kind):
    data = json.dumps({"error": {"message": said}}).encode()
    failed = await failure(server(stream(event("half"), b"data: " + data + b"\n\n")))
    assert failed.kind == kind


async def test_a_format_that_is_refused_with_a_500(server):
    asked = server(problem(500, "response_format: Input should be 'text'"))
    failed = await failure(asked, Ask("m-1", ASK.messages, response_format=SCHEMA))
    assert failed.failure.format_refused
    assert len(asked.seen) == 1


async def test_a_500_that_is_about_something_else(server):
    failed = await failure(server(problem(500)), Ask("m-1", ASK.messages, response_format=SCHEMA))
    assert not failed.failure.format_refused


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("stream_options", "Unrecognized request argument supplied: stream_options"),
        ("temperature", "Unsupported value: 'temperature' does not support 0.2"),
        ("seed", "[{'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]"),
    ],
)
async def test_an_option_that_the_server_does_not_know_is_left_out_for_good(server, option, said):
    whole = (event("hi"), event(finish="stop"), DONE)
    asked = server(problem(400, said), stream(*whole), stream(*whole))
    ask = Ask("m-1", ASK.messages, temperature=0.2, seed=1)
    for _ in range(2):
        assert (await asked.ask(ask, nothing)).text == "hi"
    sent = [json.loads(request.content) for request in asked.seen]
    assert [option in body for body in sent] == [True, False, False]


async def test_the_other_name_of_the_limit_of_tokens(server):
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    whole = stream(event("hi"), event(finish="length"), DONE)
    asked = server(problem(400, said, "unsupported_parameter", "max_tokens"), whole)
    reply = await asked.ask(Ask("m-1", ASK.messages, max_tokens=5), nothing)
    assert reply.finish == "length"
    assert json.loads(asked.seen[1].content)["max_completion_tokens"] == 5


async def test_a_limit_out_of_range_is_told_and_not_dropped(server):
    said = "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"
    failed = await failure(server(problem(400, said)), Ask("m-1", ASK.messages, max_tokens=9000))
    assert "8192" in str(failed)


async def test_usage_that_is_missing_is_estimated_and_says_so(server):
    reply = await server(stream(event("x" * 300), event(finish="stop"), DONE)).ask(ASK, nothing)
    assert reply.usage.estimated
    assert 60 < reply.usage.completion < 150


async def test_usage_with_its_details(server):
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}
    details = {
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    other = {"prompt_cache_hit_tokens": 32}
    end = (event("a", finish="stop"),)
    asked = server(
        stream(*end, event(usage=usage | details), DONE),
        stream(*end, event(usage=usage | other), DONE),
    )
    assert (await asked.ask(ASK, nothing)).usage == Usage(100, 9, 64, 5)
    assert (await asked.ask(ASK, nothing)).usage == Usage(100, 9, 32)


@pytest.mark.parametrize(
    "answer",
    [stream(b""), stream(DONE), httpx2.Response(200, text="<html>", headers={"x": "y"})],
)
async def test_a_stream_without_events(server, answer):
    assert (await failure(server(answer))).kind == "protocol"


@pytest.mark.parametrize(
    "body",
    [
        b"data: {oops\n\n",
        b"data: [1, 2]\n\n",
        b'data: "hi"\n\n',
        b"data: \xff\xfe\n\n",
        b'data: {"choices": [{"delta": 7}]}\n\n',
        b'data: {"choices": "none"}\n\n',
    ],
)
async def test_events_that_are_none(server, body):
    failed = await failure(server(stream(body)))
    assert failed.kind in ("protocol", "reset")


async def test_an_empty_reply_is_a_reply(server):
    reply = await server(stream(event(""), event(finish="stop"), USED, DONE)).ask(ASK, nothing)
    assert (reply.text, reply.thinking, reply.finish) == ("", "", "stop")


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_thinking_in_a_field_of_its_own(server, name):
    parts = []
    pieces = (event(**{name: "hm, "}), event(**{name: "yes"}), event("42"), event(finish="stop"))
    reply = await server(stream(*pieces, DONE)).ask(ASK, lambda *part: parts.append(part))
    assert (reply.thinking, reply.text) == ("hm, yes", "42")
    assert parts[0][1]
    assert parts[-1] == ("42", False)


async def test_a_body_that_never_ends_is_cut_by_the_clock(server):
    body = Body(event("a"), 60.0)
    began = time.monotonic()
    failed = await failure(server(stream(body)), Ask("m-1", ASK.messages, timeout_s=0.2))
    assert failed.kind == "timeout"
    assert time.monotonic() - began < 2
    assert body.closed


@pytest.mark.parametrize("piece", [event("abc " * 500), b": keep alive\n\n", b"x" * 5000])
async def test_a_body_that_never_ends_is_cut_by_its_size(server, monkeypatch, piece):
    monkeypatch.setattr(http_ask, "MOST_BYTES", 300_000)
    body = Forever(piece)
    failed = await failure(server(stream(body)))
    assert failed.kind == "protocol"
    assert "does not end" in str(failed)
    assert body.closed


async def test_a_reply_that_never_ends_is_cut_by_its_text(server, monkeypatch):
    monkeypatch.setattr("mtmc_engine.system.chat.collector.MOST_CHARACTERS", 10_000)
    failed = await failure(server(stream(Forever(event("abc " * 50)))))
    assert "does not end" in str(failed)


async def test_an_error_that_never_ends_is_cut_too(server, monkeypatch):
    monkeypatch.setattr(http_ask, "MOST_ERROR_BYTES", 100_000)
    answer = httpx2.Response(500, stream=Forever(b"z" * 4096))
    assert "does not end" in str(await failure(server(answer)))


async def test_cancelling_closes_the_stream(server):
    body = Body(event("a"), 60.0)
    began = asyncio.Event()
    asked = server(stream(body))
    task = asyncio.create_task(asked.ask(ASK, lambda *part: began.set()))
    await asyncio.wait_for(began.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert body.closed


async def test_a_key_that_comes_back_in_a_reply_is_left_out(server):
    half = len(KEY) // 2
    pieces = (event(f"print {KEY[:half]}"), event(f"{KEY[half:]} and {KEY}"), event(finish="stop"))
    parts = []
    reply = await server(stream(*pieces, DONE)).ask(ASK, lambda *part: parts.append(part))
    assert reply.text == "print [key] and [key]"
    assert KEY not in "".join(text for text, _ in parts)

"""A compatible server that is not ours: llama_cpp.server with the bundled model, on loopback."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from mtmc_engine.core.chat import Message
from mtmc_engine.system.chat.capabilities import Capabilities
from mtmc_engine.system.chat.openai_chat import OpenAIChat
from mtmc_engine.system.chat.types import Ask, ChatFailed, nothing
from mtmc_engine.system.environment import ONE_THREAD
from mtmc_engine.system.model_file import bundled

pytest.importorskip("fastapi")
MODEL = bundled()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MODEL is None, reason="no bundled model"),
]
HELLO = Ask("m", (Message("user", "Say hello to Bob."),), max_tokens=12, seed=1, timeout_s=120)
SCHEMA = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
FORM = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA}}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path_factory.mktemp("server") / "log").open("w+")
    options = ["--model", str(MODEL), "--n_ctx", "2048", "--port", str(port)]
    quiet = ["--logits_all", "False", "--verbose", "False"]
    server = subprocess.Popen(
        [sys.executable, "-m", "llama_cpp.server", *options, *quiet],
        stdout=log,
        stderr=log,
        env={**ONE_THREAD, "PATH": "/usr/bin:/bin", "OTEL_SDK_DISABLED": "true"},
    )
    url = f"http://127.0.0.1:{port}/v1"
    until = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(f"{url}/models", timeout=5).close()
            break
        except OSError:
            log.seek(0)
            assert server.poll() is None, log.read()
            assert time.monotonic() < until
            time.sleep(0.2)
    yield url
    server.kill()
    server.wait()


@pytest.fixture
async def chat(address):
    chat = OpenAIChat("m", address)
    yield chat
    await chat.close()


async def test_streaming_without_usage(chat):
    parts = []
    reply = await chat.ask(HELLO, lambda *part: parts.append(part))
    assert reply.text.strip()
    assert reply.text == "".join(text for text, _ in parts)
    assert reply.finish == "length"
    assert reply.usage.estimated
    assert 4 <= reply.usage.completion <= 30


async def test_cancelling_frees_the_server(chat):
    began = asyncio.Event()
    story = Ask("m", (Message("user", "Tell me a long story."),), max_tokens=1500, timeout_s=120)
    task = asyncio.create_task(chat.ask(story, lambda *part: began.set()))
    await asyncio.wait_for(began.wait(), 60)
    task.cancel()
    cancelled_at = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await chat.ask(HELLO, nothing)).text.strip()
    assert time.monotonic() - cancelled_at < 15


async def test_a_schema_is_a_500_that_is_not_tried_again(chat):
    began = time.monotonic()
    with pytest.raises(ChatFailed) as caught:
        await chat.ask(Ask("m", HELLO.messages, response_format=FORM), nothing)
    assert (caught.value.kind, caught.value.status) == ("server", 500)
    assert caught.value.failure.format_refused
    assert time.monotonic() - began < 10


async def test_the_ladder_steps_down_to_any_json(chat):
    ladder = Capabilities()
    assert await ladder.rung(chat) == "json_object"
    reply = await ladder.ask_json(chat, HELLO, SCHEMA)
    assert reply.text.lstrip().startswith("{")


async def test_a_prompt_beyond_the_context_is_an_empty_stream(chat):
    with pytest.raises(ChatFailed) as caught:
        await chat.ask(Ask("m", (Message("user", "word " * 5000),)), nothing)
    assert caught.value.kind == "protocol"
    assert "exceeds the context" in str(caught.value)


async def test_a_path_that_is_none(address):
    chat = OpenAIChat("m", f"{address}/nowhere")
    with pytest.raises(ChatFailed) as caught:
        await chat.ask(HELLO, nothing)
    assert caught.value.kind == "not_found"
    await chat.close()

"""The llama host with the bundled model: a real model in a real child process."""

from __future__ import annotations

import asyncio
import json
import time

import msgspec
import pytest
import pytest_asyncio

from mtmc_engine.core.chat import Message
from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.chat.llama_chat import LlamaChat
from mtmc_engine.system.chat.llama_memory import context_tokens, free_memory_bytes
from mtmc_engine.system.chat.types import Ask, ChatFailed, nothing
from mtmc_engine.system.model_file import bundled, check_gguf

MODEL = bundled()
pytestmark = pytest.mark.skipif(MODEL is None, reason="no bundled model")
HELLO = Ask("m", (Message("user", "Say hello to Bob."),), max_tokens=12, timeout_s=120)
STORY = Ask("m", (Message("user", "Tell me a long story."),), timeout_s=120)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chat():
    chat = LlamaChat(MODEL)
    yield chat
    await chat.close()


in_one_loop = pytest.mark.asyncio(loop_scope="module")


@in_one_loop
async def test_a_streamed_reply_is_the_same_each_time_and_its_prompt_is_read_once(chat):
    parts = []
    first = await chat.ask(HELLO, lambda *part: parts.append(part))
    again = await chat.ask(HELLO, nothing)
    assert first.text.strip()
    assert first.text == again.text == "".join(text for text, _ in parts)
    assert (first.finish, first.usage.completion) == ("length", 12)
    assert not first.usage.estimated
    assert again.usage.cached == again.usage.prompt - 1 == first.usage.prompt - 1


@in_one_loop
async def test_tokens_are_counted_by_the_model(chat):
    count = await chat.count(HELLO.messages)
    assert count == (await chat.ask(HELLO, nothing)).usage.prompt
    longer = await chat.count((Message("user", "Say hello to Bob. " * 100),))
    assert 450 < longer - count < 550


@in_one_loop
async def test_a_prompt_that_does_not_fit_is_refused_before_it_is_read(chat):
    prompt = (Message("user", "word " * 20_000),)
    began = time.monotonic()
    with pytest.raises(ChatFailed) as caught:
        await chat.ask(Ask("m", prompt), nothing)
    assert time.monotonic() - began < 10
    assert caught.value.kind == "context"
    assert f"{await chat.count(prompt):,}" in str(caught.value)
    assert f"{chat.context:,}" in str(caught.value)


@in_one_loop
async def test_a_schema_holds(chat):
    schema = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
    form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    ask = msgspec.structs.replace(HELLO, response_format=form, max_tokens=40)
    assert isinstance(json.loads((await chat.ask(ask, nothing)).text)["ready"], bool)


@in_one_loop
async def test_a_schema_that_llama_cpp_cannot_hold_is_refused_aloud(chat):
    schema = {"type": "object", "properties": {"x": {"$ref": "#/nowhere/at/all"}}}
    form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    with pytest.raises(ChatFailed) as caught:
        await chat.ask(msgspec.structs.replace(HELLO, response_format=form), nothing)
    assert caught.value.failure.format_refused


@in_one_loop
async def test_cancelling_ends_the_reply_at_its_next_token(chat):
    began = asyncio.Event()
    task = asyncio.create_task(chat.ask(STORY, lambda *part: began.set()))
    await asyncio.wait_for(began.wait(), 60)
    task.cancel()
    cancelled_at = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - cancelled_at < 2
    assert chat._child.alive
    assert (await chat.ask(HELLO, nothing)).text


@in_one_loop
async def test_counting_does_not_wait_for_a_reply(chat):
    began = asyncio.Event()
    task = asyncio.create_task(chat.ask(STORY, lambda *part: began.set()))
    await asyncio.wait_for(began.wait(), 60)
    asked_at = time.monotonic()
    await chat.count(HELLO.messages)
    assert time.monotonic() - asked_at < 2
    assert not task.done()
    task.cancel()


@in_one_loop
async def test_requests_wait_for_their_turn(chat):
    replies = await asyncio.gather(*(chat.ask(HELLO, nothing) for _ in range(3)))
    assert len({reply.text for reply in replies}) == 1


@in_one_loop
async def test_a_reply_that_takes_too_long(chat):
    with pytest.raises(ChatFailed) as caught:
        await chat.ask(msgspec.structs.replace(STORY, timeout_s=0.5), nothing)
    assert caught.value.kind == "timeout"


@pytest.mark.slow
@in_one_loop
async def test_reading_a_long_prompt_is_ended_by_force(chat):
    long = Ask("m", (Message("user", "word " * 7_000),))
    await chat.count(long.messages)
    task = asyncio.create_task(chat.ask(long, nothing))
    await asyncio.sleep(1.0)
    task.cancel()
    cancelled_at = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - cancelled_at < 4
    assert not chat._child.alive
    assert (await chat.ask(HELLO, nothing)).text


@in_one_loop
async def test_a_child_that_dies_is_started_again(chat):
    await chat.count(HELLO.messages)
    await chat._child.kill()
    assert (await chat.ask(HELLO, nothing)).text


def test_a_file_that_is_no_model(tmp_path):
    file = tmp_path / "model.gguf"
    file.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(UsageError, match="Git-LFS pointer"):
        LlamaChat(file)


def test_the_context_is_what_the_model_knows_and_memory_holds():
    facts = check_gguf(MODEL)
    assert facts.kv_bytes == 30 * 3 * (64 + 64) * 2
    assert context_tokens(facts, 64 << 30) == facts.context == 8192
    tight = facts.size_bytes + (512 << 20) + 2 * 3000 * facts.kv_bytes
    assert context_tokens(facts, tight) == 3000
    with pytest.raises(UsageError, match="does not fit the free memory"):
        context_tokens(facts, facts.size_bytes)
    trained_longer = msgspec.structs.replace(facts, context=1 << 20)
    assert context_tokens(trained_longer, 64 << 30) == 32_768
    assert free_memory_bytes() > 1 << 28

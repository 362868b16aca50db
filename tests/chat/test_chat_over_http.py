"""A model behind a real server on loopback, asked through the real child process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from replay_server import ReplayServer

from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.system.chat.openai_chat import OpenAIChat
from mtmc_engine.system.chat.patience import Policy, ask_patiently
from mtmc_engine.system.chat.types import Ask, ChatFailed, nothing

KEY = "sk-local-very-secret-4711"
ASK = Ask("replay", (Message("system", "You write Triton."), Message("user", "Make it fast.")))


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared():
    """One server and one child for most tests: a child takes seconds to import its libraries."""
    with ReplayServer({}) as server:
        chat = OpenAIChat("replay", server.base_url)
        yield chat, server
        await chat.close()


@pytest.fixture
def served(shared):
    """A function from a script to the shared (chat, server)."""

    def make(script):
        chat, server = shared
        server.play(script)
        return chat, server

    return make


@pytest_asyncio.fixture(loop_scope="module")
async def served_afresh():
    """The same with a server and a child of the test's own."""
    made = []

    def make(script):
        server = ReplayServer(script).start()
        chat = OpenAIChat("replay", server.base_url)
        made.append((chat, server))
        return chat, server

    yield make
    for chat, server in made:
        await chat.close()
        server.stop()


async def failure(chat, ask=ASK):
    with pytest.raises(ChatFailed) as caught:
        await chat.ask(ask, nothing)
    return caught.value


async def eventually(condition, seconds=5.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        await asyncio.sleep(0.02)


async def test_a_streamed_reply(served):
    chat, server = served({"reply": [{"text": "x = 1\n" * 50, "thinking": "hm", "pause_s": 0.02}]})
    parts = []
    reply = await chat.ask(ASK, lambda *part: parts.append(part))
    assert (reply.text, reply.thinking, reply.finish) == ("x = 1\n" * 50, "hm", "stop")
    assert reply.usage == Usage(len("You write Triton.\nMake it fast.") // 4, 302 // 4)
    assert "".join(text for text, thinking in parts if not thinking) == reply.text
    assert 2 <= len(parts) <= 12
    assert server.chats[0].body["messages"][1] == {"role": "user", "content": "Make it fast."}
    assert chat.address == server.base_url
    assert server.chats[0].finished


async def test_usage_by_the_server_with_what_it_had_cached(served):
    usage = {"prompt": 900, "completion": 40, "cached": 640, "reasoning": 10}
    chat, _ = served({"reply": [{"text": "x", "usage": usage}]})
    assert (await chat.ask(ASK, nothing)).usage == Usage(900, 40, 640, 10)


async def test_a_server_without_usage(served_afresh):
    chat, server = served_afresh(
        {"stream_options": False, "reply": [{"text": "abc " * 30, "times": 2}]}
    )
    for _ in range(2):
        assert (await chat.ask(ASK, nothing)).usage.estimated
    assert len(server.chats) == 3


async def test_requests_at_the_same_time(served):
    replies = [
        {"text": name, "when": name, "first_pause_s": pause}
        for name, pause in (("slow", 0.5), ("quick", 0.0))
    ]
    chat, _ = served({"reply": replies})
    asks = [Ask("replay", (Message("user", name),)) for name in ("slow", "quick")]
    began = time.monotonic()
    got = await asyncio.gather(*(chat.ask(ask, nothing) for ask in asks))
    assert [reply.text for reply in got] == ["slow", "quick"]
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"text": "half of it " * 9, "cut_after": 30}, "reset"),
        ({"raw": "data: {oops\n\n"}, "protocol"),
        ({"raw": ""}, "protocol"),
        ({"raw": 'data: {"error": {"message": "boom"}}\n\n'}, "server"),
        ({"status": 500}, "server"),
        ({"status": 404}, "not_found"),
        ({"status": 413}, "too_large"),
    ],
)
async def test_failures(served, reply, kind):
    chat, server = served({"reply": [reply]})
    failed = await failure(chat)
    assert failed.kind == kind
    assert server.base_url in str(failed)


@pytest.mark.parametrize(
    ("reply", "text", "finish"),
    [
        ({"text": ""}, "", "stop"),
        ({"text": "def f(", "finish": "length"}, "def f(", "length"),
        ({"text": "", "finish": "content_filter"}, "", "content_filter"),
        ({"text": "", "thinking": "I wonder"}, "", "stop"),
        ({"text": "whole", "finish": ""}, "whole", "unstated"),
    ],
)
async def test_endings(served, reply, text, finish):
    chat, _ = served({"reply": [reply]})
    got = await chat.ask(ASK, nothing)
    assert (got.text, got.finish) == (text, finish)


async def test_a_rate_limit_is_waited_for_and_a_broken_reply_asked_for_again(served):
    chat, server = served(
        {
            "reply": [
                {"status": 429, "retry_after": "0.2"},
                {"text": "half of it", "cut_after": 4},
                {"text": "whole"},
            ]
        }
    )
    waits = []
    policy = Policy(first_wait_s=0.05)
    reply = await ask_patiently(chat, ASK, nothing, lambda *w: waits.append(w), policy)
    assert reply.text == "whole"
    assert [left for _, _, left in waits] == [4, 3]
    assert server.chats[1].at_s - server.chats[0].at_s >= 0.2


async def test_cancelling_closes_the_stream_and_leaves_the_rest_alone(served):
    chat, server = served(
        {"reply": [{"endless": True, "text": "abc ", "pause_s": 0.02}, {"text": "next"}]}
    )
    began = asyncio.Event()
    task = asyncio.create_task(chat.ask(ASK, lambda *part: began.set()))
    await asyncio.wait_for(began.wait(), 20)
    cancelled_at = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - cancelled_at < 2
    await eventually(lambda: server.chats[0].outcome == ["left"])
    assert (await chat.ask(ASK, nothing)).text == "next"


async def test_a_reply_that_takes_too_long(served):
    chat, server = served({"reply": [{"endless": True, "text": "abc ", "pause_s": 0.02}]})
    failed = await failure(chat, msgspec.structs.replace(ASK, timeout_s=0.5))
    assert failed.kind == "timeout"
    await eventually(lambda: server.chats[0].outcome == ["left"])


async def test_nobody_at_the_address():
    with ReplayServer({}) as server:
        chat = OpenAIChat("replay", server.base_url)
    failed = await failure(chat)
    await chat.close()
    assert failed.kind == "refused"
    assert server.base_url in str(failed)


async def test_a_child_that_dies_is_started_again(served_afresh):
    chat, _ = served_afresh(
        {"reply": [{"endless": True, "text": "a ", "pause_s": 0.02}, {"text": "next"}]}
    )
    began = asyncio.Event()
    task = asyncio.create_task(chat.ask(ASK, lambda *part: began.set()))
    await asyncio.wait_for(began.wait(), 20)
    await chat._child.kill()
    with pytest.raises(ChatFailed) as caught:
        await task
    assert caught.value.kind == "died"
    assert (await chat.ask(ASK, nothing)).text == "next"


async def test_a_key_reaches_its_server_and_nothing_else(served_afresh, monkeypatch):
    monkeypatch.setenv("MTMC_LOCAL_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-host")
    chat, server = served_afresh({"key": KEY, "reply": [{"text": f"the key is {KEY}"}]})
    parts = []
    reply = await chat.ask(ASK, lambda *part: parts.append(part))
    assert reply.text == "the key is [key]"
    assert KEY not in repr(parts)
    process = Path(f"/proc/{chat._child._process.pid}")
    assert KEY.encode() not in (process / "cmdline").read_bytes()
    assert b"sk-of-another-host" not in (process / "environ").read_bytes()
    assert KEY not in chat._child.stderr_tail()
    assert server.chats[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_wrong_key_that_the_server_repeats_is_not_repeated_here(served_afresh, monkeypatch):
    monkeypatch.setenv("MTMC_LOCAL_API_KEY", KEY)
    chat, _ = served_afresh({"key": "sk-the-right-one"})
    failed = await failure(chat)
    assert failed.kind == "unauthorised"
    assert "MTMC_LOCAL_API_KEY" in str(failed)
    assert KEY not in repr(failed.failure)


async def test_no_key_is_sent_where_none_is_needed(served_afresh, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-host")
    chat, server = served_afresh({"reply": [{"text": "hi"}]})
    await chat.ask(ASK, nothing)
    assert "sk-" not in server.chats[0].headers["authorization"]


async def test_a_local_server_is_not_asked_through_a_proxy(served_afresh, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    chat, _ = served_afresh({"reply": [{"text": "hi"}]})
    assert (await chat.ask(ASK, nothing)).text == "hi"


async def test_a_module_of_the_users_folder_stays_out_of_the_child(
    served_afresh, tmp_path, monkeypatch
):
    (tmp_path / "openai.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    chat, _ = served_afresh({"reply": [{"text": "hi"}]})
    assert (await chat.ask(ASK, nothing)).text == "hi"


async def test_the_replay_server_by_hand(tmp_path):
    script = tmp_path / "script.toml"
    script.write_text('[[reply]]\ntext = "hi"\n')
    program = Path(__file__).parents[1] / "replay_server" / "replay_server.py"
    with subprocess.Popen(
        [sys.executable, program, script], stdout=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.terminate()

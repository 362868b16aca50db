"""The JSON-lines child, with a real process at the other end."""

from __future__ import annotations

import asyncio
import os
import sys
import time

import pytest
import pytest_asyncio

from mtmc_engine.core.errors import WorkerDied
from mtmc_engine.system.child import JsonChild

HOST = """
import json, os, sys, threading, time
print("a line that is no answer", flush=True)
cancelled = set()
def reply(request):
    for part in range(request.get("parts", 0)):
        print(json.dumps({"id": request["id"], "part": part}), flush=True)
        time.sleep(0.02)
        if request["id"] in cancelled and not request.get("deaf"):
            break
    time.sleep(request.get("delay", 0))
    print(json.dumps({"id": request["id"], "got": request.get("value")}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request.get("cancel"):
        cancelled.add(request["cancel"])
        continue
    if request.get("die"):
        print("dying of", request["die"], file=sys.stderr, flush=True)
        os.abort()
    threading.Thread(target=reply, args=(request,), daemon=True).start()
"""


@pytest_asyncio.fixture
async def child():
    child = JsonChild("test host")
    await child.start([sys.executable, "-S", "-c", HOST], os.environ)
    yield child
    await child.close()


async def test_answers_reach_their_requests_in_any_order(child):
    slow, quick = await asyncio.gather(
        child.request({"value": "slow", "delay": 0.3}), child.request({"value": "quick"})
    )
    assert (slow, quick) == ({"got": "slow"}, {"got": "quick"})


async def test_long_lines_travel(child):
    value = "z" * 2_000_000
    assert (await child.request({"value": value}))["got"] == value


async def test_parts_come_before_the_answer(child):
    parts = []
    answer = await child.request({"value": "end", "parts": 5}, on_part=parts.append)
    assert (parts, answer) == ([0, 1, 2, 3, 4], {"got": "end"})


async def cancelled_after_the_first_part(child, stop_s=5.0, **message):
    began = asyncio.Event()
    task = asyncio.create_task(
        child.request({"parts": 3000, **message}, None, lambda part: began.set(), stop_s)
    )
    await asyncio.wait_for(began.wait(), 5)
    task.cancel()
    at = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.monotonic() - at


async def test_cancelling_ends_a_stream_in_the_child(child):
    other = asyncio.create_task(child.request({"value": "other", "delay": 0.5}))
    assert await cancelled_after_the_first_part(child) < 2
    assert child.alive
    assert await other == {"got": "other"}


async def test_a_child_that_goes_on_streaming_is_killed(child):
    assert await cancelled_after_the_first_part(child, stop_s=0.2, deaf=True) < 2
    assert not child.alive


async def test_a_receiver_that_fails_fails_its_request_alone(child):
    def fail(part):
        raise ValueError(f"part {part} is too much")

    with pytest.raises(ValueError, match="part 0"):
        await child.request({"parts": 3}, on_part=fail)
    assert await child.request({"value": 1}) == {"got": 1}


async def test_death_is_told_to_all_that_wait_and_to_those_who_come(child):
    waiting = asyncio.create_task(child.request({"delay": 60}))
    with pytest.raises(WorkerDied, match=r"test host .*Its last words: dying of cold"):
        await child.request({"die": "cold"})
    with pytest.raises(WorkerDied):
        await waiting
    with pytest.raises(WorkerDied):
        await child.request({})
    assert not child.alive
    assert "dying of cold" in child.stderr_tail()


async def test_a_time_out_kills_the_child(child):
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await child.request({"delay": 60}, timeout_s=0.3)
    assert time.monotonic() - began < 5
    assert not child.alive


async def test_close_ends_a_child_that_reads_its_input(child):
    await child.request({})
    began = time.monotonic()
    await child.close()
    assert not child.alive
    assert time.monotonic() - began < 2


async def test_kill_ends_a_child_that_does_not(monkeypatch):
    monkeypatch.setattr("mtmc_engine.system.child._CLOSE_S", 0.2)
    child = JsonChild("deaf host")
    await child.start([sys.executable, "-S", "-c", "import time; time.sleep(600)"], os.environ)
    await child.close()
    assert not child.alive


async def test_a_program_that_is_not_there():
    child = JsonChild("absent host")
    with pytest.raises(FileNotFoundError):
        await child.start(["/no/such/program"], os.environ)

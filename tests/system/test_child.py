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
def reply(request):
    time.sleep(request.get("delay", 0))
    print(json.dumps({"id": request["id"], "got": request.get("value")}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
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

"""When to ask again, and how long to wait before."""

from __future__ import annotations

import asyncio

import pytest

from mtmc_engine.core.chat import Message
from mtmc_engine.system.chat.patience import Policy, ask_patiently
from mtmc_engine.system.chat.types import Ask, ChatFailed, Failure, RateLimited, nothing

ASK = Ask("m", (Message("user", "hi"),))
QUICK = Policy(first_wait_s=0.01, most_wait_s=0.04)


def failures(kind, count, **facts):
    return [Failure(kind, f"It is {kind}.", **facts) for _ in range(count)]


async def patiently(chat, policy=QUICK):
    waits = []
    outcome = None
    try:
        outcome = await ask_patiently(chat, ASK, nothing, lambda *w: waits.append(w), policy)
    except ChatFailed as failed:
        outcome = failed
    return outcome, waits


@pytest.mark.parametrize("kind", ["refused", "reset", "server", "died"])
async def test_passing_errors_are_tried_again(scripted, kind):
    chat = scripted(*failures(kind, 2), "done")
    reply, waits = await patiently(chat)
    assert reply.text == "done"
    assert [left for _, _, left in waits] == [3, 2]
    assert [reason for reason, _, _ in waits] == [f"It is {kind}."] * 2


async def test_not_for_ever(scripted):
    chat = scripted(*failures("refused", 9))
    failed, waits = await patiently(chat)
    assert failed.kind == "refused"
    assert len(chat.asks) == 4
    assert [left for _, _, left in waits] == [3, 2, 1]


async def test_waits_double_up_to_a_limit(scripted):
    chat = scripted(*failures("server", 6), "done")
    policy = Policy(tries=9, first_wait_s=0.01, most_wait_s=0.04)
    _, waits = await patiently(chat, policy)
    for (_, seconds, _), wanted in zip(waits, [0.01, 0.02, 0.04, 0.04, 0.04, 0.04], strict=True):
        assert wanted <= seconds <= 1.25 * wanted


@pytest.mark.parametrize(
    "kind", ["unauthorised", "not_found", "too_large", "context", "bad_request", "timeout"]
)
async def test_what_would_fail_again_is_not_tried_again(scripted, kind):
    chat = scripted(*failures(kind, 1))
    failed, waits = await patiently(chat)
    assert (failed.kind, waits) == (kind, [])


async def test_rate_limits_are_outside_the_budget_of_errors(scripted):
    limits = failures("rate_limited", 7, retry_after_s=0.01)
    chat = scripted(*limits, *failures("reset", 3), "done")
    reply, waits = await patiently(chat)
    assert reply.text == "done"
    assert [left for _, _, left in waits] == [4] * 7 + [3, 2, 1]


async def test_what_the_server_asks_for_is_obeyed(scripted):
    chat = scripted(*failures("rate_limited", 1, retry_after_s=0.3), "done")
    loop = asyncio.get_running_loop()
    began = loop.time()
    _, waits = await patiently(chat)
    assert loop.time() - began >= 0.3
    assert 0.3 <= waits[0][1] <= 0.375


async def test_a_wait_that_is_too_long_is_left_to_the_user(scripted):
    failed, waits = await patiently(scripted(*failures("rate_limited", 1, retry_after_s=3600.0)))
    assert isinstance(failed, RateLimited)
    assert failed.retry_after_s == 3600
    assert waits == []


async def test_waits_that_are_too_long_together_too(scripted):
    policy = Policy(first_wait_s=0.01, most_wait_s=0.01, most_limited_s=0.05)
    failed, waits = await patiently(scripted(*failures("rate_limited", 99)), policy)
    assert isinstance(failed, RateLimited)
    assert 3 <= len(waits) <= 5


async def test_a_503_that_asks_for_an_hour_is_not_waited_for(scripted):
    failed, waits = await patiently(scripted(*failures("server", 1, retry_after_s=3600.0)))
    assert (failed.kind, waits) == ("server", [])


async def test_a_wait_can_be_cancelled(scripted):
    chat = scripted(*failures("rate_limited", 1, retry_after_s=60.0))
    task = asyncio.create_task(patiently(chat))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

"""Commands: their order, what may interrupt, and the end of input."""

import asyncio

import pytest

from mtmc_engine.core.errors import NobodyToDecide
from mtmc_engine.core.events import ApproveAll, Branch, Decide, Hint, Pause, Stop, encode
from mtmc_engine.session.inbox import Inbox, Interrupted


@pytest.fixture
def complaints():
    return []


@pytest.fixture
def inbox(complaints):
    return Inbox(complaints.append)


async def test_lines_become_commands_in_order(inbox):
    for command in (Decide("approve"), Branch("n2"), Stop()):
        inbox.receive(encode(command))
    assert [await inbox.next() for _ in range(3)] == [Decide("approve"), Branch("n2"), Stop()]


@pytest.mark.parametrize(
    "line",
    [b"yes please", b"[]", b'{"command": "dance"}', b'{"command": "decide", "choice": "maybe"}'],
)
async def test_what_is_no_command_is_said_and_dropped(inbox, complaints, line):
    inbox.receive(line)
    assert inbox.next_request() is None
    assert len(complaints) == 1
    assert "not a command" in complaints[0]


async def test_empty_lines_mean_nothing(inbox, complaints):
    inbox.receive(b"  ")
    assert inbox.next_request() is None
    assert complaints == []


async def test_end_of_input_while_waiting(inbox):
    waiting = asyncio.ensure_future(inbox.next())
    await asyncio.sleep(0)
    inbox.receive(None)
    with pytest.raises(NobodyToDecide, match="--yes"):
        await waiting


async def test_answers_sent_ahead_outlive_the_end_of_input(inbox):
    inbox.receive(encode(Decide("reject")))
    inbox.receive(None)
    assert not inbox.closed
    assert await inbox.next() == Decide("reject")
    assert inbox.closed


async def test_decisions_wait_for_their_question(inbox):
    for command in (Pause(True), Decide("approve"), Branch("n1")):
        inbox.put(command)
    assert inbox.next_request() == Pause(True)
    assert inbox.next_request() is None


async def test_listener_hears_what_came_before_it(inbox):
    heard = []
    inbox.put(ApproveAll())
    inbox.listen(heard.append)
    inbox.put(Hint("use shared memory"))
    assert heard == [ApproveAll(), Hint("use shared memory")]


async def endless(ended):
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(True)


@pytest.mark.parametrize("command", [Stop(), Decide("skip"), Decide("stop", "n1")])
async def test_work_is_interrupted_and_has_ended(inbox, command):
    ended = []
    work = asyncio.ensure_future(inbox.unless_interrupted(endless(ended), ("", "n1")))
    await asyncio.sleep(0)
    inbox.put(command)
    with pytest.raises(Interrupted) as interruption:
        await work
    assert interruption.value.command == command
    assert ended == [True]
    assert inbox.next_request() is None


@pytest.mark.parametrize("command", [Decide("approve"), Decide("skip", "n7"), Pause(True)])
async def test_work_is_not_interrupted_by(inbox, command):
    inbox.put(command)
    assert await inbox.unless_interrupted(asyncio.sleep(0, "done"), ("", "n1")) == "done"
    assert await inbox.next() == command


async def test_a_skip_behind_another_decision_waits(inbox):
    inbox.put(Decide("approve"))
    inbox.put(Decide("skip"))
    assert await inbox.unless_interrupted(asyncio.sleep(0.01, "done"), ("",)) == "done"


@pytest.mark.parametrize("before", [Hint("one row a program"), Pause(True), Branch("n2")])
async def test_a_skip_behind_other_commands_ends_the_work(inbox, before):
    ended = []
    inbox.put(before)
    work = asyncio.ensure_future(inbox.unless_interrupted(endless(ended), ("",)))
    await asyncio.sleep(0)
    inbox.put(Decide("skip"))
    with pytest.raises(Interrupted):
        await asyncio.wait_for(work, 5)
    assert ended == [True]
    assert await inbox.next() == before


async def test_cancelling_from_outside_ends_the_work(inbox):
    ended = []
    work = asyncio.ensure_future(inbox.unless_interrupted(endless(ended)))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert ended == [True]


async def test_an_error_of_the_work_is_raised(inbox):
    async def broken():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await inbox.unless_interrupted(broken())

"""A run that is killed at any moment goes on where it was, and nothing decided is lost."""

import random

import pytest

from mtmc_engine.core.events import (
    CandidateReady,
    Decide,
    Decided,
    DecisionNeeded,
    Failed,
    GateStarted,
    NodeAdded,
    Notice,
    PlanProposed,
    SessionFinished,
    SessionStarted,
    StepStarted,
    Stop,
    VerdictReached,
)
from mtmc_engine.session.journal import Journal

THREE_REGIONS = "return torch.sigmoid(x) * x, torch.layer_norm(x, (64,)), torch.relu("

pytestmark = pytest.mark.slow


async def until(engine, stop_at):
    """Events up to the first that `stop_at` accepts."""
    events = []
    async for event in engine.events():
        events.append(event)
        if stop_at(event):
            break
    return events


async def kill(engine):
    engine.kill()
    await engine.wait()


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


def judged(events):
    return [
        (d.step, d.node, d.action.phrase, d.choice)
        for d in of(events, Decided)
        if d.action.kind != "stop"
    ]


@pytest.mark.case(24)
@pytest.mark.parametrize("seed", [1, 2])
async def test_killed_at_random_moments(start, home, seed):
    """Each kill comes some events later than the last; the sum of all runs is one session."""
    chance = random.Random(seed)
    decided, sessions = [], set()
    for kills_left in (5, 4, 3, 2, 1, 0):
        engine = await start(yes=True, planner="uniform", seed=3, steps=4, resume=True)
        quota = chance.randrange(3, 70) if kills_left else 10_000
        seen = []

        def enough(event, seen=seen, quota=quota):
            seen.append(event)
            return len(seen) >= quota or isinstance(event, SessionFinished | Failed)

        events = await until(engine, enough)
        assert not of(events, Failed), events[-1]
        started = events[0]
        assert isinstance(started, SessionStarted)
        if decided:
            assert started.resumed >= len(decided)
        fresh = [s.step for s in of(events, StepStarted)]
        assert all(step > started.resumed for step in fresh)
        if isinstance(events[-1], SessionFinished):
            break
        await kill(engine)
        path = home / "journals" / f"{started.session}.mtmc.db"
        if path.exists():
            journal = Journal.reopen(path)
            stored = judged(journal.events())
            assert stored[: len(decided)] == decided
            told = judged(events)
            assert set(told) <= set(stored)
            assert journal.fact("stopped_by") in (None, "")
            if journal.fact("task") is not None:
                sessions.add(started.session)
            journal.close()
            decided = stored
    last = events[-1]
    assert isinstance(last, SessionFinished)
    assert len(sessions) <= 1
    assert [step.step for step in last.steps] == list(range(1, len(last.steps) + 1))
    found = [(s.step, s.node, s.phrase) for s in last.steps]
    assert [one[:3] for one in decided] == found[: len(decided)]
    phrases = [(s.phrase, s.node) for s in last.steps]
    assert len(set(phrases)) == len(phrases)


@pytest.mark.case(24)
async def test_continues_at_the_next_step_after_a_failed_one(start, operator):
    """Steps 1 and 3 succeed, 2 does not; the kill comes before step 4."""

    operator.write_text(operator.read_text().replace("return torch.relu(", THREE_REGIONS))

    def answer(event):
        return {2: "reject"}.get(event.step, "approve")

    engine = await start(planner="uniform", seed=1)
    before = []
    async for event in engine.events():
        before.append(event)
        if isinstance(event, DecisionNeeded) and event.action.kind != "stop":
            if event.step == 3:
                break
            await engine.send(Decide(answer(event), event.node))
        elif isinstance(event, DecisionNeeded):
            await engine.send(Decide("reject", event.node))
    await kill(engine)
    steps_before = {s.step: s.action.phrase for s in of(before, StepStarted)}

    engine = await start(planner="uniform", seed=1, resume=True, steps=5, yes=True)
    after = await until(engine, lambda event: isinstance(event, SessionFinished | Failed))
    assert after[0].resumed == 2
    assert after[0].session == before[0].session
    assert after[0].elapsed_s > before[0].elapsed_s == 0.0
    # The options that step 3 was chosen from are shown again, without planning anew.
    plans = of(after, PlanProposed)
    assert plans[0] == of(before, PlanProposed)[-1]
    assert after.index(plans[0]) < after.index(of(after, Decided)[0])
    # Step 3 was proven but not decided: it is asked about again, and not proven again.
    assert of(after, Decided)[0].step == 3
    assert 3 not in [s.step for s in of(after, StepStarted)]
    last = after[-1]
    assert last.stopped_by in ("steps", "planner")
    by_step = {step.step: step.phrase for step in last.steps}
    assert {step: by_step[step] for step in steps_before} == steps_before
    assert [step.approved for step in last.steps[:2]] == [True, False]


async def test_killed_in_the_middle_of_a_proof(start):
    engine = await start(yes=True)
    before = await until(engine, lambda e: isinstance(e, GateStarted) and e.gate == "values")
    await kill(engine)
    (ready,) = of(before, CandidateReady)
    engine = await start(yes=True, resume=True)
    after = await until(engine, lambda e: isinstance(e, VerdictReached))
    assert of(after, StepStarted) == []
    assert of(after, CandidateReady) == []
    nodes = {node.node: node for node in of(after, NodeAdded)}
    assert nodes["n1"].source == ready.source
    assert after[-1].node == "n1"


async def test_an_edit_survives(start):
    engine = await start()
    before = []
    async for event in engine.events():
        before.append(event)
        if isinstance(event, DecisionNeeded):
            source = of(before, CandidateReady)[0].source + "\nASIDE = 1\n"
            await engine.send(Decide("edit", event.node, source=source))
        if isinstance(event, Decided):
            break
    await kill(engine)
    engine = await start(yes=True, resume=True)
    after = await until(engine, lambda e: isinstance(e, Decided))
    assert "ASIDE = 1" in of(after, NodeAdded)[-1].source
    assert of(after, VerdictReached)


async def test_a_larger_budget_continues_a_finished_plan(start):
    engine = await start(yes=True, planner="uniform", seed=3, steps=2)
    first = await until(engine, lambda e: isinstance(e, SessionFinished))
    assert first[-1].stopped_by == "steps"
    engine = await start(yes=True, planner="uniform", seed=3, steps=3, resume=True)
    second = await until(engine, lambda e: isinstance(e, SessionFinished))
    assert second[0].session == first[0].session
    assert second[0].resumed == 2
    assert [s.step for s in of(second, StepStarted)] == [3]
    assert second[-1].steps[:2] == first[-1].steps


async def test_a_changed_file_starts_afresh(start, operator):
    engine = await start()
    first = await until(engine, lambda e: isinstance(e, DecisionNeeded))
    await kill(engine)
    operator.write_text(operator.read_text() + "\nEXTRA = 1\n")
    engine = await start(resume=True)
    second = await until(engine, lambda e: isinstance(e, StepStarted))
    assert second[0].session != first[0].session
    assert second[0].resumed == 0
    assert any("changed" in notice.text for notice in of(second, Notice))


async def test_nothing_to_resume(start):
    engine = await start(yes=True, steps=1, resume=True)
    events = await until(engine, lambda e: isinstance(e, SessionFinished))
    assert events[0].resumed == 0
    assert any("no unfinished session" in notice.text for notice in of(events, Notice))


async def test_a_living_session_is_not_resumed(start):
    first = await start()
    await until(first, lambda e: isinstance(e, DecisionNeeded))
    second = await start(resume=True)
    events = await until(second, lambda e: isinstance(e, Failed | StepStarted))
    assert "still running" in events[-1].text
    assert await second.wait() == 2


async def test_stopped_by_the_user_can_be_resumed(start):
    engine = await start()
    await until(engine, lambda e: isinstance(e, DecisionNeeded))
    await engine.send(Stop())
    await engine.wait()
    engine = await start(resume=True)
    events = await until(engine, lambda e: isinstance(e, DecisionNeeded))
    assert events[0].resumed == 0
    assert of(events, StepStarted) == []
    assert events[-1].node == "n1"

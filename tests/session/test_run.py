"""Whole sessions through the real engine, driven by commands."""

import asyncio
import contextlib
import json

import pytest

from mtmc_engine.core.events import (
    ApproveAll,
    BestChanged,
    Branch,
    CandidateReady,
    Decide,
    Decided,
    DecisionNeeded,
    Export,
    Exported,
    Failed,
    GateFinished,
    GateStarted,
    Hint,
    NodeAdded,
    Notice,
    Pause,
    PlanProposed,
    Replay,
    RunPaused,
    SessionFinished,
    SessionStarted,
    SourceChanged,
    StepStarted,
    Stop,
    TaskOpened,
    VerdictReached,
    encode,
)
from mtmc_engine.session.journal import Journal

pytestmark = pytest.mark.slow


async def all_events(engine, answer=None):
    """Every event; `answer` maps each to the commands that it is answered with."""
    events = []
    async for event in engine.events():
        events.append(event)
        for command in answer(event) if answer else ():
            await engine.send(command)
    return events


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


async def test_policy_finds_the_fused_kernel(start, tmp_path):
    engine = await start(yes=True, export=str(tmp_path / "out"))
    events = await all_events(engine)
    assert await engine.wait() == 0
    assert isinstance(events[0], SessionStarted)
    (opened,) = of(events, TaskOpened)
    assert [region.label for region in opened.regions] == ["softmax", "mul+add+relu"]
    assert not opened.measured
    last = events[-1]
    assert isinstance(last, SessionFinished)
    assert last.stopped_by == "planner"
    assert not last.best.is_original
    assert last.best.time_kind == "estimated"
    assert last.best.ratio_to_original > 1.5
    assert last.steps[0].phrase == last.best.actions[0]
    assert last.steps[0].verdict == "UNTIMED"
    assert last.export == str(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"tiny_mtmc.py", "test_tiny.py"}
    (best,) = of(events, BestChanged)
    assert best.node == last.best.node


async def test_events_of_a_step_come_in_order(start):
    engine = await start(yes=True, steps=1)
    events = await all_events(engine)
    kinds = [
        type(event)
        for event in events
        if isinstance(event, StepStarted | CandidateReady | VerdictReached | Decided)
    ]
    assert kinds[:4] == [StepStarted, CandidateReady, VerdictReached, Decided]
    gates = [event.gate for event in of(events, GateStarted)]
    assert gates == [event.result.gate for event in of(events, GateFinished)]
    assert len(gates) == len(set(gates)) == 7
    states = [event.state for event in of(events, NodeAdded) if event.node == "n1"]
    assert states == ["open", "kept"]
    assert events[-1].stopped_by == "steps"


async def test_journal_has_what_was_said(start, home):
    engine = await start(yes=True, steps=1)
    events = await all_events(engine)
    journal = Journal.read(next((home / "journals").glob("*.db")))
    stored = journal.events()
    assert [e for e in events if type(e).__name__ != "PhaseChanged"] == stored
    assert journal.program("n1").source == of(events, CandidateReady)[0].source
    assert journal.fact("stopped_by") == "steps"
    journal.close()


async def test_reject_takes_the_next_option_of_the_plan(start):
    def answer(event):
        if isinstance(event, DecisionNeeded):
            yield Decide("reject", event.node, "not this one")
            if event.step == 2:
                yield Stop()

    engine = await start()
    events = await all_events(engine, answer)
    first = of(events, PlanProposed)[0]
    started = of(events, StepStarted)
    assert [s.action.phrase for s in started][:2] == [o.action.phrase for o in first.options[:2]]
    assert started[0].node == started[1].node == "n0"
    (decided,) = [d for d in of(events, Decided) if d.step == 1]
    assert (decided.choice, decided.by, decided.reason) == ("reject", "user", "not this one")
    assert events[-1].stopped_by == "user"
    assert events[-1].best.is_original
    assert [step.approved for step in events[-1].steps] == [False, False]


async def test_nobody_to_decide(start):
    engine = await start()
    engine.close_input()
    events = await all_events(engine)
    assert await engine.wait() == 3
    assert isinstance(events[-1], SessionFinished)
    assert events[-1].exit_code == 3
    assert "--yes" in of(events, Notice)[-1].text
    assert of(events, DecisionNeeded)


async def test_answers_sent_ahead(start):
    engine = await start()
    for command in (Decide("approve"), Decide("stop")):
        await engine.send(command)
    engine.close_input()
    events = await all_events(engine)
    assert await engine.wait() == 0
    assert [d.choice for d in of(events, Decided)] == ["approve"]
    assert events[-1].stopped_by == "user"
    assert not events[-1].best.is_original


async def test_edit_is_proven_and_decided_anew(start):
    def answer(event):
        if isinstance(event, DecisionNeeded) and len(edits) == 0:
            edits.append(event)
            yield Decide("edit", event.node, source="def broken(:\n")
            yield Decide("edit", event.node, source=sources[-1] + "\n# by hand\nASIDE = 1\n")
        elif isinstance(event, DecisionNeeded) and event.choices[0] == "approve":
            answered.append(event)
            if len(answered) == 2:
                yield Decide("approve", event.node)
                yield Stop()
        elif isinstance(event, CandidateReady):
            sources.append(event.source)

    edits, answered, sources = [], [], []
    engine = await start()
    events = await all_events(engine, answer)
    ready = of(events, CandidateReady)
    assert [(r.node, r.attempt) for r in ready[:2]] == [("n1", 1), ("n2", 2)]
    assert ready[1].coder == "user"
    assert "ASIDE = 1" in ready[1].source
    assert any("syntax error" in n.text for n in of(events, Notice))
    assert [d.choice for d in of(events, Decided)][:2] == ["edit", "approve"]
    assert len(of(events, VerdictReached)) >= 2


async def test_skip_ends_a_proof(start):
    def answer(event):
        if isinstance(event, GateStarted) and event.gate == "compile" and not skipped:
            skipped.append(event)
            yield Decide("skip", event.node)
        if isinstance(event, DecisionNeeded):
            yield Stop()

    skipped = []
    engine = await start()
    events = await all_events(engine, answer)
    assert [d.choice for d in of(events, Decided)] == ["skip"]
    assert of(events, StepStarted)[1].step == 2
    assert "n1" not in [v.node for v in of(events, VerdictReached)]


async def test_stop_during_a_proof_is_prompt(start, below):
    descendants, alive = below
    engine = await start(yes=True)
    children = set()
    stopped_at = 0.0
    loop = asyncio.get_running_loop()
    last = None
    async for event in engine.events():
        last = event
        if isinstance(event, GateStarted) and event.gate == "values":
            children = descendants(engine.process.pid)
            await engine.send(Stop())
            stopped_at = loop.time()
    assert await engine.wait() == 0
    assert loop.time() - stopped_at < 1.5
    assert last.stopped_by == "user"
    assert last.steps == ()
    assert len(children) > 1
    assert alive(children) == set()


async def test_pause_holds_before_the_next_step(start):
    engine = await start(yes=True, planner="uniform", steps=2)
    events = []

    async def follow():
        async for event in engine.events():
            events.append(event)
            if isinstance(event, StepStarted) and event.step == 1:
                await engine.send(Pause(True))

    following = asyncio.create_task(follow())
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(following), 15)
    assert [p.paused for p in of(events, RunPaused)] == [True]
    assert len(of(events, StepStarted)) == 1
    assert of(events, Decided)
    await engine.send(Pause(False))
    await asyncio.wait_for(following, 60)
    assert len(of(events, StepStarted)) == 2
    assert isinstance(events[-1], SessionFinished)


async def test_branch_hint_export_and_approve_all(start, tmp_path):
    def answer(event):
        if isinstance(event, DecisionNeeded) and event.step == 1:
            yield Hint("keep the rows in registers", "data flow")
            yield Branch("n99")
            yield Decide("approve", event.node)
            yield Branch("n0")
            yield Export(str(tmp_path / "asked"))
            yield ApproveAll()

    engine = await start(steps=2)
    events = await all_events(engine, answer)
    assert isinstance(events[-1], SessionFinished)
    plans = of(events, PlanProposed)
    assert [plan.node for plan in plans] == ["n0", "n0"]
    assert "keep the rows in registers" in plans[1].state_text
    read = events.index(plans[1]) + 1
    hint = "data flow: keep the rows in registers"
    assert events[read] == Notice("info", f"The plan of step 2 has read your hint: {hint}")
    assert any("n99" in notice.text for notice in of(events, Notice))
    (exported,) = of(events, Exported)
    assert exported.folder == str(tmp_path / "asked")
    assert [d.by for d in of(events, Decided)] == ["user", "policy"]


async def test_until_stops_early(start):
    engine = await start(yes=True, until=1.2)
    events = await all_events(engine)
    assert events[-1].stopped_by == "until"
    assert len(events[-1].steps) == 1


async def test_wrong_answers_are_refused_with_a_word(start):
    def answer(event):
        if isinstance(event, DecisionNeeded) and event.step == 1:
            yield Decide("approve", "n7")
            yield Decide("edit", event.node)
            yield Stop()

    engine = await start()
    events = await all_events(engine, answer)
    texts = [notice.text for notice in of(events, Notice) if notice.level == "warning"]
    assert any("n7" in text for text in texts)
    assert any("edited source" in text for text in texts)
    assert of(events, Decided) == []


async def test_replay_on_the_changed_source(start, operator):
    def answer(event):
        if isinstance(event, DecisionNeeded) and event.step == 1 and not changed:
            yield Decide("approve", event.node)
        elif isinstance(event, DecisionNeeded) and not changed:
            changed.append(True)
            operator.write_text(operator.read_text().replace("* 2.0", "* 3.0"))
        elif isinstance(event, SourceChanged):
            yield Replay()
        elif isinstance(event, DecisionNeeded) and changed:
            yield Stop()

    changed = []
    engine = await start(watch=True)
    events = await all_events(engine, answer)
    assert of(events, SourceChanged)
    assert len(of(events, TaskOpened)) == 2
    second = events[events.index(of(events, TaskOpened)[1]) :]
    replayed = [d for d in of(second, Decided) if d.by == "replay"]
    first = of(events, Decided)[0]
    assert [d.action.phrase for d in replayed] == [first.action.phrase]
    assert "3.0" in of(second, CandidateReady)[0].source
    assert events[-1].best.node == "n1"


async def test_a_change_without_a_replay_ends_a_run_of_the_policy(start, operator):
    def answer(event):
        if isinstance(event, GateStarted) and event.gate == "values":
            operator.write_text(operator.read_text() + "\nEXTRA = 1\n")
        return ()

    engine = await start(yes=True)
    events = await all_events(engine, answer)
    assert await engine.wait() == 2, events[-1]
    assert of(events, VerdictReached) == []
    assert any("changed" in notice.text for notice in of(events, Notice))


async def test_stdout_is_only_protocol(start, operator):
    operator.write_text("print('loud')\n" + operator.read_text())
    engine = await start(yes=True, steps=1)
    events = await all_events(engine)
    assert isinstance(events[-1], SessionFinished)
    assert not of(events, Failed)


async def test_lines_are_json_with_the_contract_of_the_last(start):
    engine = await start(yes=True, steps=1)
    events = await all_events(engine)
    last = json.loads(encode(events[-1]))
    assert last["event"] == "session_finished"
    assert last.keys() >= {"task", "target", "steps", "best", "export"}
    assert last["steps"][0].keys() >= {
        "action",
        "phrase",
        "verdict",
        "approved",
        "time_us",
        "time_kind",
    }
    assert last["export"] is None

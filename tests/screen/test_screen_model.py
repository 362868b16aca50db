"""The reducer: events in, snapshots out, nothing changed in place."""

from __future__ import annotations

import pytest
from screenplay import folded, recorded, until_question

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.core.events import (
    Branch,
    CandidateReady,
    Decided,
    DecisionNeeded,
    Failed,
    GateFinished,
    GateStarted,
    NodeAdded,
    PhaseChanged,
    PlanProposed,
    RunPaused,
    SessionFinished,
    SessionStarted,
    StepStarted,
    TaskOpened,
    VerdictReached,
)
from mtmc_engine.core.verdict import Class, Gate, GateResult, Verdict
from mtmc_tui.screen.model import Snapshot, apply

LOWER = Action("lower", "lower r1", "r1")
STOP = Action("stop", "stop")


def task(source: str = "x") -> TaskOpened:
    return TaskOpened("t", "Model", ("4x8",), ("float32",), "H200", False, True, (), source)


def node(name: str, parent: str | None, state: str = "open", verdict: Verdict | None = None):
    return NodeAdded(name, parent, LOWER if parent else None, state, "s", "d", verdict=verdict)


def proven(word: Class = Class.FASTER) -> Verdict:
    return Verdict(word, "said")


def after(*events) -> Snapshot:
    snapshot = Snapshot()
    for number, event in enumerate(events):
        snapshot = apply(snapshot, event, float(number))
    return snapshot


TREE = (task(), node("n0", None))
AT_WORK = (
    *TREE,
    PlanProposed("n0", 1, (ScoredAction(LOWER, 0.8), ScoredAction(STOP, 0.2)), "uniform", 0.1, ""),
    StepStarted(1, "n0", LOWER, 0.8),
    CandidateReady("n1", "n0", "new", "", "builtin", 0.0),
)


def test_events_leave_the_older_snapshot_as_it_was() -> None:
    older = after(*AT_WORK)
    newer = apply(older, GateStarted("n1", Gate.PARSE), 9.0)
    assert older.nodes["n1"].gate is None
    assert newer.nodes["n1"].gate is Gate.PARSE


def test_a_candidate_is_proving_until_its_verdict_and_waits_when_asked_about() -> None:
    snapshot = after(*AT_WORK)
    candidate = snapshot.nodes["n1"]
    assert snapshot.proving(candidate)
    assert candidate.probability == 0.8
    snapshot = apply(snapshot, VerdictReached("n1", proven()), 9.0)
    assert not snapshot.proving(snapshot.nodes["n1"])
    snapshot = apply(snapshot, DecisionNeeded("n1", 1, LOWER, ("approve",)), 9.0)
    assert snapshot.waiting(snapshot.nodes["n1"])


def test_gates_are_kept_in_the_order_they_finished_and_replaced_on_a_retry() -> None:
    first = GateFinished("n1", GateResult(Gate.PARSE, False, 0.1))
    again = GateFinished("n1", GateResult(Gate.PARSE, True, 0.1))
    snapshot = after(*AT_WORK, GateStarted("n1", Gate.PARSE), first, again)
    assert [(r.gate, r.passed) for r in snapshot.nodes["n1"].gates] == [(Gate.PARSE, True)]
    assert snapshot.nodes["n1"].gate is None


def test_an_approved_step_is_where_the_plan_goes_on() -> None:
    asked = (*AT_WORK, VerdictReached("n1", proven()), DecisionNeeded("n1", 1, LOWER, ("approve",)))
    snapshot = after(*asked, Decided("n1", 1, LOWER, "approve", "user"), node("n1", "n0", "kept"))
    assert snapshot.at == "n1"
    assert snapshot.question is None
    assert snapshot.nodes["n1"].state == "kept"
    assert snapshot.nodes["n1"].verdict == proven()


def test_a_retry_keeps_the_candidate_in_sight() -> None:
    asked = (*AT_WORK, DecisionNeeded("n1", 1, LOWER, ("retry",)))
    snapshot = after(*asked, Decided("n1", 1, LOWER, "retry", "user"))
    assert snapshot.live == "n1"
    snapshot = apply(snapshot, StepStarted(1, "n0", LOWER, 0.8, attempt=2), 9.0)
    assert snapshot.live == "n1"
    newer = CandidateReady("n2", "n0", "newer", "", "builtin", 0.0, attempt=2)
    snapshot = apply(snapshot, newer, 9.0)
    assert snapshot.live == "n2"
    assert snapshot.nodes["n2"].source == "newer"
    assert snapshot.nodes["n2"].attempt == 2
    assert snapshot.nodes["n2"].gates == ()
    assert snapshot.nodes["n1"].source != "newer"


def test_a_question_about_stopping_touches_no_program() -> None:
    kept = (*TREE, node("n1", "n0", "kept", proven()))
    snapshot = after(*kept, DecisionNeeded("n1", 2, STOP, ("approve", "reject")))
    assert snapshot.stopping
    assert not snapshot.waiting(snapshot.nodes["n1"])
    snapshot = apply(snapshot, Decided("n1", 2, STOP, "reject", "user", "go on"), 9.0)
    assert snapshot.nodes["n1"].state == "kept"
    assert snapshot.nodes["n1"].reason == ""


def test_options_leave_out_what_was_tried() -> None:
    assert [o.action.phrase for o in after(*AT_WORK[:4]).options()] == ["lower r1", "stop"]
    assert [o.action.phrase for o in after(*AT_WORK).options()] == ["stop"]


def test_a_changed_source_begins_a_new_tree() -> None:
    snapshot = after(*AT_WORK, task("changed"))
    assert dict(snapshot.nodes) == {}
    assert snapshot.task is not None
    assert snapshot.task.source == "changed"
    assert snapshot.live == ""


def test_the_phase_clock_runs_on_while_only_the_count_changes() -> None:
    snapshot = after(
        PhaseChanged("plan"), PhaseChanged("prove", "", 1, 9), PhaseChanged("prove", "", 2, 9)
    )
    assert snapshot.phase_at == 1.0
    assert snapshot.phase is not None
    assert snapshot.phase.done == 2


def test_a_failure_takes_the_question_away() -> None:
    snapshot = after(*AT_WORK, DecisionNeeded("n1", 1, LOWER, ("approve",)), Failed("gone", 1))
    assert not snapshot.running
    assert snapshot.question is None
    assert not snapshot.proving(snapshot.nodes["n1"])


def test_events_about_unknown_nodes_change_nothing() -> None:
    snapshot = after(*TREE)
    for event in (
        GateStarted("n7", Gate.PARSE),
        GateFinished("n7", GateResult(Gate.PARSE, True, 0.1)),
        VerdictReached("n7", proven()),
    ):
        assert apply(snapshot, event, 1.0) == snapshot


def test_pause_and_resume() -> None:
    assert after(*TREE, RunPaused(True)).paused
    assert not after(*TREE, RunPaused(True), RunPaused(False)).paused


def test_what_is_not_an_event_is_refused() -> None:
    with pytest.raises(TypeError, match="Branch"):
        apply(Snapshot(), Branch("n0"), 0.0)  # type: ignore[arg-type]


def test_the_recording_folds_to_its_end() -> None:
    events = recorded()
    snapshot = folded(events)
    finished = events[-1]
    assert isinstance(finished, SessionFinished)
    assert snapshot.finished == finished
    assert not snapshot.running
    assert snapshot.best is not None
    assert snapshot.best.node == finished.best.node
    kept = {name for name, node in snapshot.nodes.items() if node.state == "kept"}
    assert {step.node for step in finished.steps if step.approved} <= kept


def test_at_the_recorded_question_one_program_waits() -> None:
    snapshot = folded(until_question())
    waiting = [node.id for node in snapshot.nodes.values() if snapshot.waiting(node)]
    assert waiting == [snapshot.live]
    assert snapshot.nodes[snapshot.live].verdict is not None


def test_an_edited_candidate_keeps_its_step() -> None:
    edited = after(
        *AT_WORK,
        VerdictReached("n1", proven()),
        DecisionNeeded("n1", 1, LOWER, ("approve", "edit")),
        Decided("n1", 1, LOWER, "edit", "user"),
        CandidateReady("n2", "n0", "edited", "", "user", 0.0, attempt=2),
        GateStarted("n2", Gate.VALUES),
    ).nodes["n2"]
    assert (edited.action, edited.step, edited.attempt) == (LOWER, 1, 2)
    assert (edited.source, edited.probability) == ("edited", 0.8)


def test_the_clock_of_a_resumed_session_goes_on() -> None:
    started = SessionStarted("s", "f", "j", "p", "c", "t", 8, resumed=2, elapsed_s=90.0)
    assert apply(Snapshot(), started, 100.0).started_at == 10.0

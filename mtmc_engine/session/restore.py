"""Going on with a session from its journal: nothing judged is judged again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import (
    AnyEvent,
    BestChanged,
    CandidateReady,
    Decided,
    GateFinished,
    NodeAdded,
    PlanProposed,
    StepStarted,
    TaskOpened,
    VerdictReached,
)
from mtmc_engine.core.options import RunOptions
from mtmc_engine.core.task import Task
from mtmc_engine.plan.tree import ROOT, NodeState, PlanTree
from mtmc_engine.session.catalogue import SessionEntry, list_sessions
from mtmc_engine.session.journal import Journal
from mtmc_engine.session.run import StepRecord

# Decisions after which a step is over; after the others it goes on.
FINAL = ("approve", "reject", "skip")


class Restored:
    """The tree, the steps and the place of a session, rebuilt from its events.

    opened: the event that told of the task. current: node of the next step. proposal: the last.
    compiled: by node, the event that told of its compiled code.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.tree: PlanTree | None = None
        self.records: list[StepRecord] = []
        self.refused_stops: set[str] = set()
        self.opened: TaskOpened | None = None
        self.proposal: PlanProposed | None = None
        self.compiled: dict[str, GateFinished] = {}
        self.current = ROOT
        self.best = ROOT
        self._seconds = 0.0
        for event in _of_last_tree(journal.events()):
            self._apply(event)

    @property
    def decided(self) -> int:
        """How many steps have a decision."""
        return sum(record.choice is not None for record in self.records)

    def _apply(self, event: AnyEvent) -> None:
        match event:
            case TaskOpened():
                self.opened = event
            case NodeAdded():
                self._node(event)
            case PlanProposed():
                self.current, self._seconds = event.node, event.seconds
                self.proposal = event
            case StepStarted():
                self._begin(event)
            case CandidateReady():
                self._candidate(event)
            case VerdictReached() if self.tree is not None and event.node in self.tree:
                self.tree.prove(event.node, event.verdict)
            case Decided():
                self._decide(event)
            case GateFinished() if event.result.code:
                self.compiled[event.node] = event
            case BestChanged():
                self.best = event.node
            case _:
                pass

    def _node(self, event: NodeAdded) -> None:
        if event.parent is None and self.tree is None:
            program = self._journal.program(ROOT)
            assert program is not None
            self.tree = PlanTree(program, event.measurement)
            if event.verdict is not None:
                self.tree.prove(ROOT, event.verdict)
        assert self.tree is not None
        if event.parent is not None and event.node in self.tree:
            self.tree.set_state(event.node, _state(event.state))
        if event.measurement is not None and event.node in self.tree:
            self.tree.measure(event.node, event.measurement)

    def _begin(self, event: StepStarted) -> None:
        if self.records and self.records[-1].step == event.step:
            record = self.records[-1]
            record.repairs += bool(event.repair) and event.attempt != record.attempt
            record.attempt, record.repair = event.attempt, event.repair
            return
        first = not any(record.parent == event.node for record in self.records)
        seconds = self._seconds if first else 0.0
        self.records.append(
            StepRecord(
                event.step,
                event.node,
                event.action,
                event.probability,
                planner_seconds=seconds,
            )
        )

    def _candidate(self, event: CandidateReady) -> None:
        assert self.tree is not None
        record = self.records[-1]
        program = self._journal.program(event.node)
        assert program is not None
        self.tree.add(
            event.parent,
            record.action,
            program,
            record.step,
            attempt=event.attempt,
            sample=event.sample,
            coder=event.coder,
        )
        record.attempt = event.attempt
        record.nodes.append(event.node)
        record.node = event.node

    def _decide(self, event: Decided) -> None:
        if event.action.kind == "stop":
            if event.choice == "reject":
                self.refused_stops.add(event.node)
            return
        assert self.tree is not None
        record = self.records[-1]
        if event.choice in FINAL:
            record.choice, record.reason = event.choice, event.reason
            record.node = event.node if event.node in record.nodes else record.node
        elif any(self.tree[node].attempt == record.attempt for node in record.nodes):
            record.attempt += 1
            record.repair, record.repairs = "", 0
        if event.choice == "approve":
            self.current = event.node


def find_unfinished(
    folder: Path, options: RunOptions, most_steps: int, digest: str, device: DeviceCard
) -> tuple[SessionEntry | None, str]:
    """The session to go on with, and a sentence where it is not what one might expect.

    It is the newest of this file that was not completed and has fewer than `most_steps` steps.
    Raises UsageError where it still runs.
    """
    path = Path(options.file).absolute()
    entries = list_sessions(folder)
    ours = [entry for entry in entries if entry.file == str(path) and entry.has_task]
    for entry in ours:
        fits = entry.digest == digest and entry.target == device.name
        if not (fits and _has_more(entry, most_steps)):
            continue
        if entry.state == "running":
            raise UsageError(
                f"Session {entry.session} is still running: stop it before resuming it."
            )
        return entry, ""
    return None, f"{_why_none(options.file, entries, ours, digest, device)} This one starts anew."


def _why_none(
    file: str,
    entries: Sequence[SessionEntry],
    ours: Sequence[SessionEntry],
    digest: str,
    device: DeviceCard,
) -> str:
    """Why no session is gone on with. entries: all, newest first. ours: those of this file."""
    name = Path(file).stem
    if not ours:
        damaged = [e.problem for e in entries if e.problem and e.session.startswith(f"{name}-")]
        same = [e for e in entries if e.digest == digest and e.has_task]
        moved = [f"Session {same[0].session} is of {same[0].file}."] if same else []
        return " ".join([f"There is no unfinished session of {file}.", *damaged[:1], *moved])
    newest = ours[0]
    if newest.digest != digest:
        return f"{file} has changed since session {newest.session}."
    if newest.target != device.name:
        return f"Session {newest.session} is for {newest.target}, not for {device.name}."
    return (
        f"Session {newest.session} of {file} is finished:"
        f" `mtmc-tui export {newest.session} DIR` writes its answer."
    )


def stored_task(journal: Journal) -> Task:
    """The task as it was captured."""
    return msgspec.convert(journal.fact("task"), Task)


def _has_more(entry: SessionEntry, most_steps: int) -> bool:
    if entry.stopped_by == "steps":
        return entry.steps < most_steps
    return entry.state in ("running", "unfinished")


def _of_last_tree(events: list[AnyEvent]) -> list[AnyEvent]:
    starts = [at for at, event in enumerate(events) if isinstance(event, TaskOpened)]
    return events[starts[-1] :] if starts else []


def _state(word: str) -> NodeState:
    state: NodeState = msgspec.convert(word, NodeState)
    return state

"""What the screen knows: an immutable snapshot, and the one function that moves it on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch
from types import MappingProxyType

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.core.events import (
    AnyEvent,
    BestChanged,
    CandidateReady,
    Decided,
    DecisionNeeded,
    Exported,
    Failed,
    GateFinished,
    GateStarted,
    NodeAdded,
    Notice,
    PhaseChanged,
    PlanProposed,
    RunPaused,
    SessionFinished,
    SessionStarted,
    SourceChanged,
    StepStarted,
    TaskOpened,
    VerdictReached,
)
from mtmc_engine.core.measurement import GroupCost, Measurement
from mtmc_engine.core.program import Region
from mtmc_engine.core.verdict import Gate, GateResult, Verdict

ORIGINAL = "n0"


@dataclass(frozen=True)
class Node:
    """A program of the tree, or a candidate on its way into it.

    state: "open", "kept", "rejected" or "failed", as the engine says.
    gates: results so far; `gate` is the one that runs now.
    """

    id: str
    parent: str | None
    action: Action | None
    state: str
    source: str = ""
    diff: str = ""
    step: int = 0
    probability: float | None = None
    attempt: int = 1
    gates: tuple[GateResult, ...] = ()
    gate: Gate | None = None
    regions: tuple[Region, ...] = ()
    verdict: Verdict | None = None
    measurement: Measurement | None = None
    coder: str = ""
    seconds: float = 0.0
    reason: str = ""

    def evidence(self, gate: Gate) -> Mapping[str, object]:
        """What that gate found; empty where it has not run."""
        return next((result.evidence for result in self.gates if result.gate == gate), {})


@dataclass(frozen=True)
class Pending:
    """A step that the coder works on: it has no node yet."""

    step: int
    node: str
    action: Action
    probability: float
    attempt: int


@dataclass(frozen=True)
class Snapshot:
    """Everything the panes draw.

    started_at, phase_at: seconds on the client's clock.
    at: the node that the plan continues from.
    live: the candidate that is being proven or asked about, "" between steps.
    """

    session: SessionStarted | None = None
    task: TaskOpened | None = None
    phase: PhaseChanged | None = None
    started_at: float = 0.0
    phase_at: float = 0.0
    nodes: Mapping[str, Node] = field(default_factory=lambda: MappingProxyType({}))
    costs: Mapping[str, tuple[GroupCost, ...]] = field(default_factory=lambda: MappingProxyType({}))
    proposal: PlanProposed | None = None
    pending: Pending | None = None
    live: str = ""
    at: str = ORIGINAL
    step: int = 0
    question: DecisionNeeded | None = None
    best: BestChanged | None = None
    paused: bool = False
    stale: SourceChanged | None = None
    notices: tuple[Notice, ...] = ()
    exported: Exported | None = None
    finished: SessionFinished | None = None
    failure: Failed | None = None
    ended_at: float | None = None

    @property
    def running(self) -> bool:
        """The engine has not said its last word."""
        return self.finished is None and self.failure is None

    @property
    def best_node(self) -> str:
        """The best program: the original until a better one is kept."""
        return self.best.node if self.best is not None else ORIGINAL

    @property
    def measured(self) -> bool:
        """Times come from a GPU of this machine."""
        return self.task is not None and self.task.measured

    def proving(self, node: Node) -> bool:
        """The gates are at work on this program."""
        return node.id == self.live and node.verdict is None

    def waiting(self, node: Node) -> bool:
        """The user is asked whether to keep this program."""
        return self.question is not None and not self.stopping and self.question.node == node.id

    @property
    def stopping(self) -> bool:
        """The question that waits is whether to stop, not about a program."""
        return self.question is not None and self.question.action.kind == "stop"

    def children(self, node: str) -> tuple[Node, ...]:
        """In the order they were tried."""
        return tuple(child for child in self.nodes.values() if child.parent == node)

    def options(self) -> tuple[ScoredAction, ...]:
        """The current proposal without what has become a node of the tree, best first."""
        if self.proposal is None or not self.running:
            return ()
        tried = {child.action.phrase for child in self.children(self.proposal.node) if child.action}
        return tuple(o for o in self.proposal.options if o.action.phrase not in tried)


def apply(snapshot: Snapshot, event: AnyEvent, now: float) -> Snapshot:
    """The snapshot after `event`, which arrived at `now` (seconds on the client's clock)."""
    return _apply(event, snapshot, now)


@singledispatch
def _apply(event: AnyEvent, snapshot: Snapshot, now: float) -> Snapshot:
    raise TypeError(f"no rule for {type(event).__name__}")


@_apply.register
def _(event: SessionStarted, snapshot: Snapshot, now: float) -> Snapshot:
    return Snapshot(session=event, started_at=now - event.elapsed_s, phase_at=now)


@_apply.register
def _(event: PhaseChanged, snapshot: Snapshot, now: float) -> Snapshot:
    """The clock of a phase runs on while only its detail and count change."""
    same = snapshot.phase is not None and snapshot.phase.phase == event.phase
    return replace(snapshot, phase=event, phase_at=snapshot.phase_at if same else now)


@_apply.register
def _(event: TaskOpened, snapshot: Snapshot, now: float) -> Snapshot:
    """A task begins, or begins anew on a changed source: with a tree of its own."""
    return replace(
        Snapshot(snapshot.session, event, snapshot.phase, snapshot.started_at, snapshot.phase_at),
        notices=snapshot.notices,
        paused=snapshot.paused,
    )


@_apply.register
def _(event: NodeAdded, snapshot: Snapshot, now: float) -> Snapshot:
    known = snapshot.nodes.get(event.node)
    verdict = event.verdict or (known.verdict if known else None)
    measurement = event.measurement or (verdict.measurement if verdict else None)
    node = replace(
        known or Node(event.node, event.parent, event.action, event.state),
        parent=event.parent,
        action=event.action,
        state=event.state,
        source=event.source,
        diff=event.diff or (known.diff if known else ""),
        gates=verdict.gates if verdict and verdict.gates else (known.gates if known else ()),
        gate=None,
        regions=event.regions or (known.regions if known else ()),
        verdict=verdict,
        measurement=measurement,
    )
    moved = _with_node(snapshot, node)
    if measurement is not None and measurement.groups:
        moved = _with_costs(moved, event.node, measurement.groups)
    return moved


@_apply.register
def _(event: PlanProposed, snapshot: Snapshot, now: float) -> Snapshot:
    moved = replace(snapshot, proposal=event, at=event.node, step=event.step, pending=None, live="")
    return _with_costs(moved, event.node, event.costs) if event.costs else moved


@_apply.register
def _(event: StepStarted, snapshot: Snapshot, now: float) -> Snapshot:
    pending = Pending(event.step, event.node, event.action, event.probability, event.attempt)
    return replace(snapshot, pending=pending, step=event.step, question=None)


@_apply.register
def _(event: CandidateReady, snapshot: Snapshot, now: float) -> Snapshot:
    begun = snapshot.pending or _edited(snapshot, event.node)
    node = Node(
        event.node,
        event.parent,
        begun.action if begun else None,
        "open",
        source=event.source,
        diff=event.diff,
        step=begun.step if begun else snapshot.step,
        probability=begun.probability if begun else None,
        attempt=begun.attempt if begun else 1,
        coder=event.coder,
        seconds=event.seconds,
    )
    return replace(_with_node(snapshot, node), live=event.node, pending=None, question=None)


@_apply.register
def _(event: GateStarted, snapshot: Snapshot, now: float) -> Snapshot:
    return _change(snapshot, event.node, gate=event.gate)


@_apply.register
def _(event: GateFinished, snapshot: Snapshot, now: float) -> Snapshot:
    node = snapshot.nodes.get(event.node)
    if node is None:
        return snapshot
    others = tuple(result for result in node.gates if result.gate != event.result.gate)
    return _change(snapshot, event.node, gate=None, gates=(*others, event.result))


@_apply.register
def _(event: VerdictReached, snapshot: Snapshot, now: float) -> Snapshot:
    node = snapshot.nodes.get(event.node)
    if node is None:
        return snapshot
    verdict = event.verdict
    moved = _change(
        snapshot,
        event.node,
        gate=None,
        gates=verdict.gates or node.gates,
        verdict=verdict,
        measurement=verdict.measurement,
    )
    if verdict.measurement is not None and verdict.measurement.groups:
        return _with_costs(moved, event.node, verdict.measurement.groups)
    return moved


@_apply.register
def _(event: DecisionNeeded, snapshot: Snapshot, now: float) -> Snapshot:
    live = "" if event.action.kind == "stop" else event.node
    return replace(snapshot, question=event, live=live, pending=None, step=event.step)


@_apply.register
def _(event: Decided, snapshot: Snapshot, now: float) -> Snapshot:
    moved = replace(snapshot, question=None)
    if event.action.kind == "stop":
        return moved
    if event.choice == "approve":
        moved = replace(moved, at=event.node)
    goes_on = event.choice in ("edit", "retry")
    moved = replace(moved, live=snapshot.live if goes_on else "", pending=None)
    return _change(moved, event.node, reason=event.reason)


@_apply.register
def _(event: BestChanged, snapshot: Snapshot, now: float) -> Snapshot:
    return replace(snapshot, best=event)


@_apply.register
def _(event: SourceChanged, snapshot: Snapshot, now: float) -> Snapshot:
    return replace(snapshot, stale=event)


@_apply.register
def _(event: RunPaused, snapshot: Snapshot, now: float) -> Snapshot:
    return replace(snapshot, paused=event.paused)


@_apply.register
def _(event: Notice, snapshot: Snapshot, now: float) -> Snapshot:
    return replace(snapshot, notices=(*snapshot.notices, event))


@_apply.register
def _(event: Exported, snapshot: Snapshot, now: float) -> Snapshot:
    return replace(snapshot, exported=event)


@_apply.register
def _(event: SessionFinished, snapshot: Snapshot, now: float) -> Snapshot:
    return replace(_at_rest(snapshot, now), finished=event)


@_apply.register
def _(event: Failed, snapshot: Snapshot, now: float) -> Snapshot:
    return replace(_at_rest(snapshot, now), failure=event)


def _edited(snapshot: Snapshot, node: str) -> Pending | None:
    """The step of a candidate that is there already: the user's edit is its next attempt."""
    known = snapshot.nodes.get(node)
    if known is None or known.action is None:
        return None
    return Pending(
        known.step or snapshot.step,
        known.parent or "",
        known.action,
        known.probability or 0.0,
        known.attempt + 1,
    )


def _at_rest(snapshot: Snapshot, now: float) -> Snapshot:
    return replace(
        snapshot, question=None, pending=None, live="", phase=None, ended_at=now, paused=False
    )


def _with_node(snapshot: Snapshot, node: Node) -> Snapshot:
    return replace(snapshot, nodes=MappingProxyType({**snapshot.nodes, node.id: node}))


def _with_costs(snapshot: Snapshot, node: str, costs: tuple[GroupCost, ...]) -> Snapshot:
    return replace(snapshot, costs=MappingProxyType({**snapshot.costs, node: costs}))


def _change(snapshot: Snapshot, node: str, **changes: object) -> Snapshot:
    """The snapshot with fields of one node replaced; unchanged where the node is not known."""
    known = snapshot.nodes.get(node)
    if known is None:
        return snapshot
    return _with_node(snapshot, replace(known, **changes))  # type: ignore[arg-type]

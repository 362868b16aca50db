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
    BudgetChanged,
    CandidateReady,
    CoderWaits,
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
    PromptReady,
    ReplyFinished,
    ReplyPart,
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
    attempt, sample: which candidate of its step it is; attempts count from 1, samples from 0.
    gates: results so far; `gate` is the one that runs now. ptx: what the compile gate kept.
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
    sample: int = 0
    gates: tuple[GateResult, ...] = ()
    gate: Gate | None = None
    ptx: str = ""
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
    """A step that the coder works on: its next candidate is not there yet."""

    step: int
    node: str
    action: Action
    probability: float
    attempt: int
    repair: str = ""
    samples: int = 1


Place = tuple[int, int, int]
"""Step, attempt and sample."""


@dataclass(frozen=True)
class Exchange:
    """One prompt and what came back. parts: slices of the reply, each with whether it is thinking.

    reply: None while it comes.
    """

    prompt: PromptReady | None = None
    parts: tuple[tuple[str, bool], ...] = ()
    reply: ReplyFinished | None = None


Talks = Mapping[Place, tuple[Exchange, ...]]


@dataclass(frozen=True)
class Snapshot:
    """Everything the panes draw.

    started_at, phase_at: seconds on the client's clock. told_at: when the phase was last told of.
    at: the node that the plan continues from.
    live: the candidate that is being proven or asked about, "" between steps.
    begun: the step that was begun last, whose candidates may still come.
    talks: what was said to and by language models, by place; the last one is the latest.
    unsent: the prompt that waits to be sent. wait: what the coder waits for since `wait_at`.
    """

    session: SessionStarted | None = None
    task: TaskOpened | None = None
    phase: PhaseChanged | None = None
    started_at: float = 0.0
    phase_at: float = 0.0
    told_at: float = 0.0
    nodes: Mapping[str, Node] = field(default_factory=lambda: MappingProxyType({}))
    costs: Mapping[str, tuple[GroupCost, ...]] = field(default_factory=lambda: MappingProxyType({}))
    proposal: PlanProposed | None = None
    pending: Pending | None = None
    begun: Pending | None = None
    talks: Talks = field(default_factory=lambda: MappingProxyType({}))
    unsent: PromptReady | None = None
    wait: CoderWaits | None = None
    wait_at: float = 0.0
    budget: BudgetChanged | None = None
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
        question = self.question
        if question is None or question.about != "program" or self.stopping:
            return False
        return question.node == node.id

    @property
    def converses(self) -> bool:
        """The coder asks a language model, or has asked one."""
        return bool(self.talks) or (self.session is not None and bool(self.session.coder_address))

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
    began = snapshot.phase_at if same else now
    return replace(snapshot, phase=event, phase_at=began, told_at=now)


@_apply.register
def _(event: TaskOpened, snapshot: Snapshot, now: float) -> Snapshot:
    """A task begins, or begins anew on a changed source: with a tree of its own."""
    return replace(
        Snapshot(snapshot.session, event, snapshot.phase, snapshot.started_at, snapshot.phase_at),
        told_at=snapshot.told_at,
        notices=snapshot.notices,
        paused=snapshot.paused,
        budget=snapshot.budget,
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
        step=event.step or (known.step if known else 0),
        attempt=event.attempt,
        sample=event.sample,
        coder=event.coder or (known.coder if known else ""),
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
    pending = Pending(
        event.step,
        event.node,
        event.action,
        event.probability,
        event.attempt,
        event.repair,
        event.samples,
    )
    quiet = _quiet(snapshot)
    return replace(quiet, pending=pending, begun=pending, step=event.step, question=None)


@_apply.register
def _(event: PromptReady, snapshot: Snapshot, now: float) -> Snapshot:
    place = (event.step, event.attempt, event.sample)
    moved = _with_talk(snapshot, place, (*snapshot.talks.get(place, ()), Exchange(event)))
    return replace(moved, unsent=event if event.waits else None, wait=None)


@_apply.register
def _(event: ReplyPart, snapshot: Snapshot, now: float) -> Snapshot:
    place = (event.step, event.attempt, event.sample)
    earlier, last = _coming(snapshot, place)
    slices = (*last.parts, (event.text, event.thinking))
    return _with_talk(_quiet(snapshot), place, (*earlier, replace(last, parts=slices)))


@_apply.register
def _(event: ReplyFinished, snapshot: Snapshot, now: float) -> Snapshot:
    place = (event.step, event.attempt, event.sample)
    earlier, last = _coming(snapshot, place)
    return _with_talk(_quiet(snapshot), place, (*earlier, replace(last, reply=event)))


@_apply.register
def _(event: CoderWaits, snapshot: Snapshot, now: float) -> Snapshot:
    """What came of a reply before it broke off is void; with several at once one cannot know."""
    moved = replace(_quiet(snapshot), wait=event, wait_at=now)
    coming = [p for p, said in moved.talks.items() if said[-1].parts and said[-1].reply is None]
    if len(coming) != 1:
        return moved
    *earlier, last = moved.talks[coming[0]]
    return _with_talk(moved, coming[0], (*earlier, replace(last, parts=())))


@_apply.register
def _(event: BudgetChanged, snapshot: Snapshot, now: float) -> Snapshot:
    return replace(snapshot, budget=event)


@_apply.register
def _(event: CandidateReady, snapshot: Snapshot, now: float) -> Snapshot:
    begun = snapshot.pending or snapshot.begun or _of_node(snapshot, snapshot.live)
    node = Node(
        event.node,
        event.parent,
        begun.action if begun else None,
        "open",
        source=event.source,
        diff=event.diff,
        step=begun.step if begun else snapshot.step,
        probability=begun.probability if begun else None,
        attempt=event.attempt,
        sample=event.sample,
        coder=event.coder,
        seconds=event.seconds,
    )
    moved = _with_node(_quiet(snapshot), node)
    return replace(moved, live=event.node, pending=None, question=None)


@_apply.register
def _(event: GateStarted, snapshot: Snapshot, now: float) -> Snapshot:
    moved = replace(snapshot, live=event.node) if event.node in snapshot.nodes else snapshot
    return _change(moved, event.node, gate=event.gate)


@_apply.register
def _(event: GateFinished, snapshot: Snapshot, now: float) -> Snapshot:
    node = snapshot.nodes.get(event.node)
    if node is None:
        return snapshot
    ptx = event.result.code.get("ptx", node.ptx)
    if node.verdict is not None:  # told again where a session goes on
        return _change(snapshot, event.node, ptx=ptx)
    others = tuple(result for result in node.gates if result.gate != event.result.gate)
    return _change(snapshot, event.node, gate=None, gates=(*others, event.result), ptx=ptx)


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
    asks_about_it = event.about == "program" and event.action.kind != "stop"
    live = event.node if asks_about_it else ""
    quiet = _quiet(snapshot)
    return replace(quiet, question=event, live=live, pending=None, step=event.step)


@_apply.register
def _(event: Decided, snapshot: Snapshot, now: float) -> Snapshot:
    moved = replace(_quiet(snapshot), question=None)
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


def _quiet(snapshot: Snapshot) -> Snapshot:
    """No prompt waits any more, and the coder does not."""
    if snapshot.unsent is None and snapshot.wait is None:
        return snapshot
    return replace(snapshot, unsent=None, wait=None)


def _coming(snapshot: Snapshot, place: Place) -> tuple[tuple[Exchange, ...], Exchange]:
    """What was said before, and the exchange that a reply belongs to.

    After a reply that broke off the same prompt is sent again.
    """
    *earlier, last = snapshot.talks.get(place) or (Exchange(),)
    if last.reply is None:
        return tuple(earlier), last
    return (*earlier, last), Exchange(last.prompt)


def _with_talk(snapshot: Snapshot, place: Place, said: tuple[Exchange, ...]) -> Snapshot:
    return replace(snapshot, talks=MappingProxyType({**snapshot.talks, place: said}))


def _of_node(snapshot: Snapshot, node: str) -> Pending | None:
    """The step of a candidate that is there already, for the user's edit of it."""
    known = snapshot.nodes.get(node)
    if known is None or known.action is None:
        return None
    return Pending(
        known.step or snapshot.step,
        known.parent or "",
        known.action,
        known.probability or 0.0,
        known.attempt,
    )


def _at_rest(snapshot: Snapshot, now: float) -> Snapshot:
    return replace(
        _quiet(snapshot),
        question=None,
        pending=None,
        live="",
        phase=None,
        ended_at=now,
        paused=False,
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

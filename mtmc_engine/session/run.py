"""The present state of a session, and the events that follow from changing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

from mtmc_engine.coder.seam import Coder
from mtmc_engine.core.action import Action
from mtmc_engine.core.events import (
    AnyEvent,
    BestChanged,
    Choice,
    NodeAdded,
    PlanProposed,
)
from mtmc_engine.core.options import RunOptions
from mtmc_engine.core.task import Task
from mtmc_engine.plan.situation import state_at
from mtmc_engine.plan.state import State
from mtmc_engine.plan.tree import PlanTree, TreeNode
from mtmc_engine.planner.seam import Planner
from mtmc_engine.proof.timing.timer import Timer
from mtmc_engine.schedule.regions import regions_in
from mtmc_engine.session.inbox import Inbox
from mtmc_engine.session.outlet import Outlet
from mtmc_engine.session.seams import Exporter
from mtmc_engine.system.chat.meter import Meter
from mtmc_engine.system.config import Config
from mtmc_engine.system.jobs import Workshop

# Attempts that a plan may cost, for each step that it may keep.
ATTEMPTS_PER_STEP = 2


@dataclass
class StepRecord:
    """One step from its start to its decision.

    parent: the node it acts on. nodes: all its candidates, oldest first. node: the one that is
    decided on, "" before the coder has answered.
    attempt: which round of asking this is, from 1. repair: what it is to mend, "" for a round
    that is no repair. repairs: rounds of repair since a user last had a say.
    choice: None until it is decided. reason: why it was decided so.
    """

    step: int
    parent: str
    action: Action
    probability: float
    attempt: int = 1
    repair: str = ""
    repairs: int = 0
    nodes: list[str] = field(default_factory=list)
    node: str = ""
    choice: Choice | None = None
    reason: str = ""
    planner_seconds: float = 0.0


@dataclass
class Run:
    """A session at work.

    scratch: folder of proofs; what is worked out about the reference is kept there.
    current: the node that the next step acts on.
    records: all steps of this tree, oldest first; the last may be undecided.
    hints_read: how many of the hints a plan has read.
    refused_stops: nodes at which the user went on against the planner's advice.
    meter: what language models use. timer: None for the GPU of this machine, or estimates
    without one.
    """

    options: RunOptions
    scratch: Path
    config: Config
    outlet: Outlet
    inbox: Inbox
    workshop: Workshop
    planner: Planner
    coder: Coder
    exporter: Exporter
    task: Task
    tree: PlanTree
    current: str
    records: list[StepRecord] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    hints_read: int = 0
    proposal: PlanProposed | None = None
    refused_stops: set[str] = field(default_factory=set)
    follows_policy: bool = False
    paused: bool = False
    best: str = ""
    exported: str | None = None
    meter: Meter = field(default_factory=Meter)
    timer: Timer | None = None

    @property
    def reads_prompts(self) -> bool:
        """Whether the client reads each prompt before it is sent."""
        return (self.options.read_prompts or self.config.read_prompts) and not self.options.yes

    @property
    def samples(self) -> int:
        """Candidates that are asked for at once."""
        asked = self.options.samples or self.config.samples
        return asked if self.coder.learns else 1

    @property
    def max_steps(self) -> int:
        """Most attempts."""
        return max_steps(self.options, self.config)

    @property
    def next_step(self) -> int:
        """Number of the step to begin, from 1."""
        return len(self.records) + 1

    def tried(self, node: str) -> set[str]:
        """Phrases of the actions that were begun on this node."""
        return {record.action.phrase for record in self.records if record.parent == node}


def max_steps(options: RunOptions, config: Config) -> int:
    """Most attempts of a run."""
    return options.steps or ATTEMPTS_PER_STEP * config.steps


def plan_is_full(run: Run) -> bool:
    """Whether the plan has as many kept steps as it may; --steps lifts this."""
    kept = len(run.tree.path(run.current)) - 1
    return run.options.steps is None and kept >= run.config.steps


def state_of(run: Run) -> State:
    """What the planner sees at the current node."""
    return state_at(
        run.task,
        run.tree,
        run.current,
        step=run.next_step,
        max_steps=run.max_steps,
        hints=tuple(run.hints),
    )


def node_event(run: Run, node: TreeNode) -> NodeAdded:
    """The event that tells all about a node as it stands."""
    return NodeAdded(
        node=node.id,
        parent=node.parent,
        action=node.action,
        state=node.state,
        source=node.program.source,
        digest=node.program.digest,
        diff=diff_to_parent(run.tree, node),
        regions=regions_in(run.task.graph, node.program.schedule),
        verdict=node.verdict,
        measurement=node.measurement,
        step=node.opened_at,
        attempt=node.attempt,
        sample=node.sample,
        coder=node.coder,
    )


def diff_to_parent(tree: PlanTree, node: TreeNode) -> str:
    """Unified diff of a node's source against its parent's; "" for the original."""
    if node.parent is None:
        return ""
    before = tree[node.parent].program.source.splitlines(keepends=True)
    after = node.program.source.splitlines(keepends=True)
    return "".join(unified_diff(before, after, node.parent, node.id))


def best_events(run: Run, refresh: bool = False) -> list[AnyEvent]:
    """A BestChanged where another node is the best now; the run remembers it.

    refresh: also where it is the same node, with a new time.
    """
    best = run.tree.best()
    standing = run.tree.standing(best.id)
    if best.id == run.best and not refresh:
        return []
    if standing is None:
        if run.tree.timed:
            return []
        run.best = best.id
        return [BestChanged(best.id, None, None, None)]
    run.best = best.id
    return [BestChanged(best.id, standing.ratio, standing.time_us, standing.kind)]

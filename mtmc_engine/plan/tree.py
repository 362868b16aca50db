"""The plan tree: nodes are programs with verdicts, edges are actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from mtmc_engine.core.action import Action
from mtmc_engine.core.measurement import Measurement, TimeKind
from mtmc_engine.core.program import Program
from mtmc_engine.core.verdict import Class, Verdict

NodeState = Literal["open", "kept", "rejected", "failed"]
ROOT = "n0"
# Further steps that an enabling step may wait for one that pays (proof: Verdict classes).
OPEN_STEPS = 3
# A program replaces the original only where it is proven faster by this much.
MARGIN = 0.01


class TreeNode(Struct, frozen=True):
    """One program of the tree.

    state: "open" while it is being proven, waits for a decision, or is an enabling step that may
           still pay; "kept" and "rejected" by decision; "failed" where a gate refused it.
    opened_at: the step that made it; 0 for the original. All candidates of a step are nodes:
    attempt counts the rounds of asking from 1, sample those of one round from 0.
    coder: who wrote it, "" for the original.
    """

    id: str
    parent: str | None
    action: Action | None
    program: Program
    verdict: Verdict | None = None
    measurement: Measurement | None = None
    state: NodeState = "open"
    opened_at: int = 0
    attempt: int = 1
    sample: int = 0
    coder: str = ""


@dataclass(frozen=True)
class Standing:
    """A program's speed against the original: original time over its time.

    low: lower end of the 95 % interval; equal to `ratio` where it is estimated.
    """

    ratio: float
    low: float
    time_us: float
    kind: TimeKind

    @property
    def faster(self) -> bool:
        return self.low > 1 + MARGIN


class PlanTree:
    """All programs of a session; the root is the original."""

    def __init__(self, original: Program, measurement: Measurement | None = None) -> None:
        root = TreeNode(ROOT, None, None, original, measurement=measurement, state="kept")
        self._nodes: dict[str, TreeNode] = {ROOT: root}

    def __getitem__(self, node: str) -> TreeNode:
        """Raises KeyError for an unknown node."""
        return self._nodes[node]

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def __iter__(self) -> Iterator[TreeNode]:
        """All nodes in the order in which they were made."""
        return iter(tuple(self._nodes.values()))

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def root(self) -> TreeNode:
        return self._nodes[ROOT]

    def add(
        self,
        parent: str,
        action: Action,
        program: Program,
        step: int,
        *,
        attempt: int = 1,
        sample: int = 0,
        coder: str = "",
    ) -> TreeNode:
        """A new open node below `parent`; its id is the next of "n1", "n2", …"""
        self._nodes[parent]  # an unknown parent is a KeyError
        node = TreeNode(
            f"n{len(self._nodes)}",
            parent,
            action,
            program,
            opened_at=step,
            attempt=attempt,
            sample=sample,
            coder=coder,
        )
        self._nodes[node.id] = node
        return node

    def prove(
        self, node: str, verdict: Verdict, measurement: Measurement | None = None
    ) -> TreeNode:
        """Record what proof found; a verdict's own measurement is taken where none is given."""
        return self._put(
            replace(
                self._nodes[node],
                verdict=verdict,
                measurement=measurement or verdict.measurement,
            )
        )

    def measure(self, node: str, measurement: Measurement) -> TreeNode:
        """Record a newer measurement."""
        return self._put(replace(self._nodes[node], measurement=measurement))

    def set_state(self, node: str, state: NodeState) -> TreeNode:
        return self._put(replace(self._nodes[node], state=state))

    def _put(self, node: TreeNode) -> TreeNode:
        self._nodes[node.id] = node
        return node

    def children(self, node: str) -> tuple[TreeNode, ...]:
        return tuple(n for n in self if n.parent == node)

    def one_a_step(self) -> tuple[TreeNode, ...]:
        """The node that stands for each step, in order: what was kept or waits, else what was
        proven, else the last attempt.
        """
        chosen: dict[tuple[str | None, int, str], TreeNode] = {}
        for node in self:
            if node.action is None:
                continue
            step = (node.parent, node.opened_at, node.action.phrase)
            if step not in chosen or _weight(node) >= _weight(chosen[step]):
                chosen[step] = node
        return tuple(chosen.values())

    def path(self, node: str) -> tuple[TreeNode, ...]:
        """From the root to `node`, both included."""
        found: list[TreeNode] = []
        at: str | None = node
        while at is not None:
            found.append(self._nodes[at])
            at = self._nodes[at].parent
        return tuple(reversed(found))

    def phrases(self, node: str) -> tuple[str, ...]:
        """The steps from the root to `node`; none for the root itself."""
        return tuple(step.action.phrase for step in self.path(node) if step.action)

    def tried(self, node: str) -> tuple[str, ...]:
        """Phrases of the actions that were tried on this program."""
        return tuple(n.action.phrase for n in self.children(node) if n.action is not None)

    def standing(self, node: str) -> Standing | None:
        """Speed against the original; None where it has no time of the original's kind."""
        return _standing(self._nodes[node], self.root.measurement)

    def best(self) -> TreeNode:
        """The fastest proven program that was kept; the original where none is proven faster.

        Measured times are compared with measured ones only, estimates with estimates. Of equals
        the earlier one. Where nothing can be timed it is the last one that was kept: by hand, and
        for reasons that only who kept it knows.
        """
        kept = [node for node in self if node.state == "kept" and _proven(node)]
        ranked = [
            (standing.ratio, node)
            for node in kept
            for standing in [self.standing(node.id)]
            if standing is not None and standing.faster
        ]
        if ranked:
            return max(ranked, key=lambda pair: pair[0])[1]
        return self.root if self.timed or not kept else kept[-1]

    @property
    def timed(self) -> bool:
        """Whether any program has a time, measured or not."""
        return any(node.measurement is not None for node in self)

    def open_branches(self, step: int) -> tuple[TreeNode, ...]:
        """Proven open nodes that may still wait at step `step`, oldest first."""
        return tuple(n for n in self._waiting() if step - n.opened_at <= OPEN_STEPS)

    def expired(self, step: int) -> tuple[TreeNode, ...]:
        """Proven open nodes whose further steps are spent at step `step`, oldest first."""
        return tuple(n for n in self._waiting() if step - n.opened_at > OPEN_STEPS)

    def _waiting(self) -> tuple[TreeNode, ...]:
        return tuple(n for n in self if n.state == "open" and _proven(n))


def _weight(node: TreeNode) -> int:
    if not _proven(node):
        return 0
    return 2 if node.state in ("kept", "open") else 1


def _proven(node: TreeNode) -> bool:
    """Values and integrity are proven; policy or user have judged its share of library calls."""
    verdict = node.verdict
    return verdict is not None and (verdict.proven or verdict.verdict is Class.NOT_OWN_KERNEL)


def _standing(node: TreeNode, original: Measurement | None) -> Standing | None:
    own = node.measurement
    if own is None or (original is not None and own.kind != original.kind):
        return None
    if node.id == ROOT:
        return Standing(1.0, 1.0, own.time_us, own.kind)
    against = own.against.get("original")
    if against is not None:
        return Standing(against.value, against.low, own.time_us, own.kind)
    if original is None:
        return None
    ratio = original.time_us / own.time_us
    return Standing(ratio, ratio, own.time_us, own.kind)

"""The candidates of a step before the gates: all are judged, the best stands for the step."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mtmc_engine.core.events import GateFinished, GateStarted, PhaseChanged, VerdictReached
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.verdict import Class, Gate, Verdict
from mtmc_engine.plan import policy
from mtmc_engine.plan.tree import TreeNode
from mtmc_engine.proof.progress import GateProgress
from mtmc_engine.proof.prove import Bounds, Subject, prove
from mtmc_engine.session.briefing import judged_before
from mtmc_engine.session.run import Run, StepRecord, node_event
from mtmc_engine.session.stage import Stage, phase_of
from mtmc_engine.session.stale import check_fresh
from mtmc_engine.session.together import together
from mtmc_engine.session.turns import Turns


async def judge(run: Run, record: StepRecord) -> None:
    """Prove the candidates of this round that are not judged, and choose the one that counts.

    One whose source was judged bad before gets that verdict; one that is a proven program of the
    tree is set aside. Raises Interrupted, and Stale where the user's file changed meanwhile.
    """
    fresh: list[TreeNode] = []
    for node in of_round(run, record):
        if _is_open(node) and not _settled(run, node, fresh):
            fresh.append(node)
    if fresh:
        run.outlet.phase("prove", record.action.phrase)
        names = [node.id for node in fresh]
        about = ("", record.parent, *record.nodes)
        await run.inbox.unless_interrupted(_all_proven(run, names), about)
    _choose(run, record)


def of_round(run: Run, record: StepRecord) -> list[TreeNode]:
    """The candidates of the step's present attempt."""
    nodes = [run.tree[name] for name in record.nodes]
    return [node for node in nodes if node.attempt == record.attempt]


def same_as(run: Run, node: TreeNode, unjudged: Sequence[TreeNode] = ()) -> str:
    """An earlier program that this one is, of the judged ones and `unjudged`; "" for none."""
    waiting = {other.id for other in unjudged}
    for other in run.tree:
        if other.id == node.id:
            return ""
        known = other.parent is None or other.verdict is not None or other.id in waiting
        if known and other.program.digest == node.program.digest:
            return other.id
    return ""


def _is_open(node: TreeNode) -> bool:
    return node.verdict is None and node.state == "open"


def _settled(run: Run, node: TreeNode, fresh: Sequence[TreeNode]) -> bool:
    """Whether a candidate need not be proven, since its source is known; the tree then says so."""
    if earlier := judged_before(run, node):
        assert earlier.verdict is not None
        reason = f"The same source failed before, as {earlier.id}: {earlier.verdict.reason}"
        store_verdict(run, node.id, replace(earlier.verdict, reason=reason))
        return True
    if same_as(run, node, fresh):
        run.outlet.emit(node_event(run, run.tree.set_state(node.id, "rejected")))
        return True
    return False


async def _all_proven(run: Run, names: Sequence[str]) -> None:
    turns = Turns(len(names))

    async def proven(number: int, name: str) -> None:
        try:
            verdict = await prove(
                subject_of(run, name),
                run.workshop,
                _GateTeller(run, name).tell,
                timer=run.timer,
                pause=turns.pause(number),
            )
            await check_fresh(run.task)
            store_verdict(run, name, verdict)
        finally:
            await turns.over(number)

    await together(proven(number, name) for number, name in enumerate(names))


def _choose(run: Run, record: StepRecord) -> None:
    """The best of the round by measurement, on ties the first; else the one that came furthest."""
    judged = [node for node in of_round(run, record) if node.verdict is not None]
    if judged:
        record.node = max(judged, key=lambda node: _merit(run, record, node)).id


def _merit(run: Run, record: StepRecord, node: TreeNode) -> tuple[bool, float]:
    assert node.verdict is not None
    ruling = policy.decide(node.verdict, record.action, run.task.policy, node.measurement)
    if not node.verdict.proven and ruling.choice != "approve":
        return False, len(node.verdict.gates)
    ratio = node.measurement.against.get("previous") if node.measurement else None
    return True, ratio.value if ratio else 0.0


def with_original(measurement: Measurement) -> Measurement:
    """The measurement with a ratio to the original, which is what eager runs."""
    against = measurement.against
    if "original" in against or "eager" not in against:
        return measurement
    return replace(measurement, against={**against, "original": against["eager"]})


def store_verdict(run: Run, node: str, verdict: Verdict) -> None:
    """Put a verdict into the tree and the journal."""
    if verdict.measurement is not None:
        verdict = replace(verdict, measurement=with_original(verdict.measurement))
    proven = run.tree.prove(node, verdict)
    if not verdict.proven and verdict.verdict is not Class.NOT_OWN_KERNEL:
        proven = run.tree.set_state(node, "failed")
    run.outlet.emit(VerdictReached(node, verdict), node_event(run, proven))


def subject_of(run: Run, node: str) -> Subject:
    """What proof needs to know about a node: its time is compared with its parent's."""
    candidate = run.tree[node]
    schedules = {"original": run.tree.root.program.schedule}
    baselines = {}
    if candidate.parent is not None:
        parent = run.tree[candidate.parent].program
        schedules["previous"] = parent.schedule
        baselines["previous"] = parent.source
    original = "eager"
    if run.task.program:  # then the original is no library call, and takes part itself
        original = "previous" if candidate.parent == run.tree.root.id else "original"
        baselines |= {original: run.tree.root.program.source}
    return Subject(
        task=run.task,
        source=candidate.program.source,
        name=node,
        folder=str(run.scratch),
        baselines=baselines,
        original=original,
        schedule=candidate.program.schedule,
        baseline_schedules=schedules,
        seed=run.options.seed,
        bounds=Bounds.of(run.config.limits),
    )


class _GateTeller:
    """Turns the progress of one proof into events: one start and one end for each gate."""

    def __init__(self, run: Run, node: str) -> None:
        self._run = run
        self._node = node
        self._started: set[Gate] = set()
        self._stage = Stage(run.config.limits)

    def tell(self, progress: GateProgress) -> None:
        """Take one moment of the proof."""
        if progress.gate not in self._started:
            self._started.add(progress.gate)
            self._run.outlet.emit(GateStarted(self._node, progress.gate))
            self._stage.enter(progress.gate)
            if progress.result is None and self._stage.left_s is not None:
                phrase = node.action.phrase if (node := self._run.tree[self._node]).action else ""
                self._run.outlet.phase(phase_of(progress.gate), phrase, self._stage.left_s)
        if progress.result is not None:
            self._run.outlet.emit(GateFinished(self._node, progress.result))
        elif progress.total:
            counted = (progress.detail, progress.done, progress.total, self._stage.left_s)
            self._run.outlet.emit(PhaseChanged(phase_of(progress.gate), *counted))

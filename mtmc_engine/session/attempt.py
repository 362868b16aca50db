"""One step: the coder writes a candidate, proof judges it, somebody decides."""

from __future__ import annotations

from msgspec.structs import replace

from mtmc_engine.coder.edit import edited
from mtmc_engine.coder.seam import Candidate, CannotImplement, Feedback
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import (
    AnyEvent,
    CandidateReady,
    Decide,
    Decided,
    GateFinished,
    GateStarted,
    PhaseChanged,
    StepStarted,
    VerdictReached,
)
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.verdict import Class, Gate, Verdict
from mtmc_engine.proof.progress import GateProgress
from mtmc_engine.proof.prove import Bounds, Subject, prove
from mtmc_engine.session.decisions import Answer, conclude, decide, dropped_state
from mtmc_engine.session.inbox import Interrupted
from mtmc_engine.session.requests import Stopped
from mtmc_engine.session.run import Run, StepRecord, diff_to_parent, node_event
from mtmc_engine.session.stale import check_fresh

MEMORY_FAULTS = frozenset({Class.RESOURCES, Class.OOM, Class.ILLEGAL_ACCESS})
COMPILE_GATES = frozenset({Gate.PARSE, Gate.IMPORT, Gate.COMPILE})


async def take_step(run: Run, record: StepRecord) -> None:
    """Carry a step to its decision, from wherever an earlier run left it.

    Raises Stopped; the step then stays undecided and a resumed run takes it up again.
    """
    while await attempt(run, record):
        await _act(run, record, await decide(run, record))


async def attempt(run: Run, record: StepRecord) -> bool:
    """Write and prove the candidate where that is not done; False where the step is over.

    Raises Stopped.
    """
    if record.choice is not None:
        return False
    try:
        if not record.node:
            await _write(run, record)
        if run.tree[record.node].verdict is None and not _is_known(run, record):
            await _prove(run, record)
    except CannotImplement as error:
        conclude(run, record, Answer("reject", "policy", "failed", str(error)))
    except Interrupted as interruption:
        command = interruption.command
        if not isinstance(command, Decide) or command.choice == "stop":
            raise Stopped from None
        state = dropped_state(run, record)
        conclude(run, record, Answer("skip", "user", state, command.reason))
    return record.choice is None


def _is_known(run: Run, record: StepRecord) -> bool:
    """Whether the candidate is a program that the tree has already: the step is then over."""
    digest = run.tree[record.node].program.digest
    for node in run.tree:
        judged = node.parent is None or node.verdict is not None
        if node.program.digest == digest and node.id != record.node and judged:
            reason = f"It is the same program as {node.id}."
            conclude(run, record, Answer("reject", "policy", "rejected", reason))
            return True
    return False


async def _act(run: Run, record: StepRecord, answer: Answer) -> None:
    if answer.choice == "edit":
        _edit(run, record, answer)
    elif answer.choice == "retry":
        run.outlet.emit(_decided(record, answer))
        await _retry(run, record)
    else:
        conclude(run, record, answer)


def _edit(run: Run, record: StepRecord, answer: Answer) -> None:
    """Take the user's source as the candidate; a syntax error brings the question again."""
    assert answer.source is not None
    try:
        program = edited(run.task, run.tree[record.node].program, answer.source)
    except UsageError as error:
        run.outlet.warn(str(error))
        return
    record.attempt += 1
    _announce(run, record, Candidate(program, (), "user", 0.0), _decided(record, answer))


async def _retry(run: Run, record: StepRecord) -> None:
    """Let the coder try again; where it has nothing else to offer, the question comes again."""
    record.attempt += 1
    try:
        await _write(run, record)
    except CannotImplement as error:
        run.outlet.warn(str(error))


async def _write(run: Run, record: StepRecord) -> None:
    """Let the coder implement the step's action."""
    run.outlet.emit(
        StepStarted(record.step, record.parent, record.action, record.probability, record.attempt),
    )
    run.outlet.phase("code", record.action.phrase)
    parent = run.tree[record.parent].program
    feedback = _feedback(run, record)
    work = run.coder.implement(run.task, parent, record.action, feedback)
    candidate = await run.inbox.unless_interrupted(work, ("", record.parent))
    _announce(run, record, candidate)


def _announce(run: Run, record: StepRecord, candidate: Candidate, *first: AnyEvent) -> None:
    """A candidate enters the tree and the journal: it is what is proven next."""
    program = candidate.program
    if record.node:
        node = run.tree.set_program(record.node, program)
    else:
        node = run.tree.add(record.parent, record.action, program, record.step)
        record.node = node.id
    ready = CandidateReady(
        node=node.id,
        parent=record.parent,
        source=program.source,
        diff=diff_to_parent(run.tree, node),
        coder=candidate.coder,
        seconds=candidate.seconds,
    )
    run.outlet.emit(*first, ready, program=program)
    for note in candidate.notes:
        run.outlet.notice(note)


def _decided(record: StepRecord, answer: Answer) -> Decided:
    return Decided(record.node, record.step, record.action, answer.choice, answer.by, answer.reason)


async def _prove(run: Run, record: StepRecord) -> None:
    """Let the gates judge the candidate."""
    run.outlet.phase("prove", record.action.phrase)
    work = prove(
        subject_of(run, record.node),
        run.workshop,
        _GateTeller(run, record.node).tell,
    )
    verdict = await run.inbox.unless_interrupted(work, ("", record.parent, record.node))
    await check_fresh(run.task)
    store_verdict(run, record.node, verdict)


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
    return Subject(
        task=run.task,
        source=candidate.program.source,
        name=node,
        folder=str(run.scratch),
        baselines=baselines,
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

    def tell(self, progress: GateProgress) -> None:
        """Take one moment of the proof."""
        if progress.gate not in self._started:
            self._started.add(progress.gate)
            self._run.outlet.emit(GateStarted(self._node, progress.gate))
        if progress.result is not None:
            self._run.outlet.emit(GateFinished(self._node, progress.result))
        elif progress.total:
            phase = "time" if progress.gate is Gate.TIMING else "prove"
            counted = PhaseChanged(phase, progress.detail, progress.done, progress.total)
            self._run.outlet.emit(counted)


def _feedback(run: Run, record: StepRecord) -> Feedback | None:
    """What the failed candidate before this one taught; None where there is none."""
    if not record.node:
        return None
    node = run.tree[record.node]
    if node.verdict is None or node.verdict.proven or not node.verdict.gates:
        return None
    last = node.verdict.gates[-1]
    repair = (
        "fix_memory"
        if node.verdict.verdict in MEMORY_FAULTS
        else "fix_compile"
        if last.gate in COMPILE_GATES
        else "fix_math"
    )
    return Feedback(
        repair, last.gate, node.verdict.verdict, last.sentence, node.program.source, last.log
    )

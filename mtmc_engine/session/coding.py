"""Asking the coder for the candidates of a step."""

from __future__ import annotations

import asyncio

from mtmc_engine.coder.seam import Candidate, CannotImplement, CoderAsk, CoderUnavailable
from mtmc_engine.core.events import (
    AnyEvent,
    CandidateReady,
    Event,
    PhaseChanged,
    ReplyFinished,
    StepStarted,
)
from mtmc_engine.session.briefing import evidence_at, feedback_on, last_verdicts
from mtmc_engine.session.budget import budget_event, seconds_left, use_up_time
from mtmc_engine.session.run import Run, StepRecord, diff_to_parent
from mtmc_engine.session.together import together


async def write(run: Run, record: StepRecord) -> None:
    """Let the coder implement the step's action, in as many samples as were asked for.

    Each candidate is in the tree and the journal as soon as it is there. Raises CannotImplement
    where there is none, CoderUnavailable where the coder cannot be asked or the budget is spent,
    and Interrupted.
    """
    samples = run.samples
    run.outlet.emit(
        StepStarted(
            record.step,
            record.parent,
            record.action,
            record.probability,
            record.attempt,
            record.repair,
            samples,
        )
    )
    left_s = seconds_left(run.meter)
    run.outlet.emit(PhaseChanged("code", record.action.phrase, budget_s=left_s))
    about = ("", record.parent, *record.nodes)
    work = together(_sample(run, record, number) for number in range(samples))
    try:
        # A user who reads a prompt takes the time that it takes.
        async with asyncio.timeout(None if run.reads_prompts else left_s) as bound:
            problems = await run.inbox.unless_interrupted(work, about)
    except TimeoutError:
        if not bound.expired():
            raise
        use_up_time(run.meter)
        run.outlet.emit(budget_event(run.meter))
        raise CoderUnavailable(run.meter.exceeded() or "") from None
    _weigh(run, [problem for problem in problems if problem is not None], samples)


def announce(
    run: Run, record: StepRecord, candidate: Candidate, *first: AnyEvent, sample: int = 0
) -> None:
    """A candidate enters the tree and the journal: it is what is proven next."""
    node = run.tree.add(
        record.parent,
        record.action,
        candidate.program,
        record.step,
        attempt=record.attempt,
        sample=sample,
        coder=candidate.coder,
    )
    record.nodes.append(node.id)
    record.node = node.id
    ready = CandidateReady(
        node=node.id,
        parent=record.parent,
        source=candidate.program.source,
        diff=diff_to_parent(run.tree, node),
        coder=candidate.coder,
        seconds=candidate.seconds,
        attempt=record.attempt,
        sample=sample,
    )
    run.outlet.emit(*first, ready, program=candidate.program)
    for note in candidate.notes:
        run.outlet.notice(note)


async def _sample(run: Run, record: StepRecord, number: int) -> CannotImplement | None:
    """Ask once; why there is no candidate, where there is none."""
    parent = run.tree[record.parent].program
    ask = _ask(run, record, number)
    try:
        candidate = await run.coder.implement(run.task, parent, record.action, ask)
    except CannotImplement as error:
        return error
    announce(run, record, candidate, sample=number)
    return None


def _ask(run: Run, record: StepRecord, sample: int) -> CoderAsk:
    failed = run.tree[record.node] if record.node else None

    def tell(event: Event) -> None:
        _tell(run, event)

    return CoderAsk(
        feedback=feedback_on(run, failed) if failed else None,
        hints=tuple(run.hints),
        evidence=evidence_at(run, record.parent),
        verdicts=last_verdicts(run),
        step=record.step,
        attempt=record.attempt,
        sample=sample,
        tell=tell,
        send=run.inbox.sent if run.reads_prompts else None,
    )


def _tell(run: Run, event: Event) -> None:
    """Pass on what the coder tells; a reply is stored together with what is used by now."""
    more = [budget_event(run.meter)] if isinstance(event, ReplyFinished) else []
    run.outlet.emit(event, *more)  # type: ignore[arg-type]


def _weigh(run: Run, problems: list[CannotImplement], samples: int) -> None:
    """Say which samples came to nothing; raise it where all did."""
    if len(problems) < samples:
        for problem in problems:
            run.outlet.notice(f"One of {samples} samples came to nothing: {problem}")
        return
    gone = (problem for problem in problems if isinstance(problem, CoderUnavailable))
    raise next(gone, problems[0])

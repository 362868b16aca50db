"""One step: the coder writes candidates, proof judges them, somebody decides."""

from __future__ import annotations

from mtmc_engine.coder.edit import edited
from mtmc_engine.coder.llm.feedback import repair_of
from mtmc_engine.coder.seam import Candidate, CannotImplement, CoderUnavailable
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import Decide, Decided
from mtmc_engine.plan import policy
from mtmc_engine.session.briefing import judged_before
from mtmc_engine.session.coding import announce, write
from mtmc_engine.session.decisions import (
    Answer,
    ask_without_coder,
    conclude,
    decide,
    dropped_state,
)
from mtmc_engine.session.inbox import Interrupted
from mtmc_engine.session.judging import judge, of_round, same_as
from mtmc_engine.session.requests import Stopped
from mtmc_engine.session.run import Run, StepRecord

USER = "user"


async def take_step(run: Run, record: StepRecord) -> None:
    """Carry a step to its decision, from wherever an earlier run left it.

    Raises Stopped; the step then stays undecided and a resumed run takes it up again.
    """
    while await attempt(run, record):
        _act(run, record, await decide(run, record))


async def attempt(run: Run, record: StepRecord) -> bool:
    """Write and prove candidates where that is not done, and send failed ones back to the coder.

    False where the step is over, else record.node is to be decided on. Raises Stopped.
    """
    while record.choice is None:
        try:
            if not of_round(run, record):
                await write(run, record)
            await judge(run, record)
            _settle_known(run, record)
            if record.choice is not None or not _goes_back(run, record):
                break
            _begin_repair(run, record)
        except CoderUnavailable as error:
            await _without_coder(run, record, str(error))
        except CannotImplement as error:
            if _keeps_former(run, record, str(error)):
                break
            conclude(run, record, Answer("reject", "policy", "failed", str(error)))
        except Interrupted as interruption:
            command = interruption.command
            if not isinstance(command, Decide) or command.choice == "stop":
                raise Stopped from None
            state = dropped_state(run, record)
            conclude(run, record, Answer("skip", "user", state, command.reason))
    return record.choice is None


def _settle_known(run: Run, record: StepRecord) -> None:
    """End a step whose candidates are all known, unless the coder may write another one."""
    node = run.tree[record.node]
    if node.verdict is None:
        reason = f"It is the same program as {same_as(run, node)}."
        conclude(run, record, Answer("reject", "policy", "rejected", reason))
    elif judged_before(run, node) and not _goes_back(run, record):
        conclude(run, record, Answer("reject", "policy", "failed", node.verdict.reason))


def _goes_back(run: Run, record: StepRecord) -> bool:
    """Whether a failed candidate is sent back to the coder without asking anybody."""
    node = run.tree[record.node]
    if node.verdict is None or node.coder == USER or not run.coder.learns:
        return False
    ruling = policy.decide(node.verdict, record.action, run.task.policy, node.measurement)
    failed = ruling.choice == "reject" and ruling.state == "failed"
    return failed and record.repairs < run.config.repairs


def _begin_repair(run: Run, record: StepRecord) -> None:
    verdict = run.tree[record.node].verdict
    assert verdict is not None
    record.attempt += 1
    record.repairs += 1
    record.repair = repair_of(verdict.verdict, verdict.gates[-1].gate)


def _keeps_former(run: Run, record: StepRecord, why: str) -> bool:
    """Whether the candidate that the user sent back is asked about again, for want of another."""
    if not record.node or record.repair:
        return False
    run.outlet.warn(why)
    record.attempt = run.tree[record.node].attempt
    return True


async def _without_coder(run: Run, record: StepRecord, why: str) -> None:
    """The coder cannot be asked: the budget or the policy ends the run, else the user is asked.

    Raises Stopped.
    """
    if run.meter.exceeded():
        run.outlet.notice(why)
        raise Stopped(why, by="budget")
    answer = await ask_without_coder(run, record, why)
    if answer.choice == "skip":
        conclude(run, record, answer)
        return
    run.outlet.emit(_decided(record, answer))


def _act(run: Run, record: StepRecord, answer: Answer) -> None:
    if answer.choice == "edit":
        _edit(run, record, answer)
    elif answer.choice == "retry":
        run.outlet.emit(_decided(record, answer))
        _next_attempt(record)
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
    first = _decided(record, answer)
    _next_attempt(record)
    announce(run, record, Candidate(program, (), USER, 0.0), first)


def _next_attempt(record: StepRecord) -> None:
    """The user has a say: what follows is no repair, and may be repaired anew."""
    record.attempt += 1
    record.repair, record.repairs = "", 0


def _decided(record: StepRecord, answer: Answer) -> Decided:
    return Decided(
        record.node or record.parent,
        record.step,
        record.action,
        answer.choice,
        answer.by,
        answer.reason,
    )

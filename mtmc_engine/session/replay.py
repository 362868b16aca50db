"""The approved plan once more, on a changed source: a new tree in the same session."""

from __future__ import annotations

from pathlib import Path

from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import MtmcError, UsageError
from mtmc_engine.plan import policy
from mtmc_engine.schedule.legal import parse_phrase
from mtmc_engine.session.attempt import attempt
from mtmc_engine.session.baseline import adopt, baseline
from mtmc_engine.session.decisions import Answer, conclude, dropped_state
from mtmc_engine.session.opening import open_task, task_event
from mtmc_engine.session.run import Run, StepRecord


async def replay(run: Run) -> None:
    """Open the user's file as it is now and apply the approved steps to it, each proven anew.

    A file that cannot be opened leaves everything as it was, with a warning. A step that is not
    legal any more, or fails now, is left out.
    """
    plan = [node.action for node in run.tree.path(run.current) if node.action is not None]
    run.outlet.phase("capture", Path(run.task.file).name, run.config.limits.capture_s)
    file, device = run.task.file, run.task.device
    named = run.options.reference
    work = open_task(
        file, device, run.options.seed, run.workshop, run.config.limits, reference=named
    )
    try:
        task = await run.inbox.unless_interrupted(work)
    except MtmcError as error:
        run.outlet.warn(f"The plan stays as it was. {error}")
        return
    run.outlet.emit(task_event(task, replayed=run.timer is not None))
    tree = await baseline(
        task,
        run.outlet,
        run.inbox,
        run.workshop,
        scratch=run.scratch,
        seed=run.options.seed,
        limits=run.config.limits,
        timer=run.timer,
    )
    adopt(run, task, tree)
    for action in plan:
        await _repeat(run, action)


async def _repeat(run: Run, action: Action) -> None:
    schedule = run.tree[run.current].program.schedule
    try:
        now = parse_phrase(run.task, schedule, action.phrase)
    except UsageError:
        run.outlet.warn(f"'{action.phrase}' is not possible on the new source: left out.")
        return
    record = StepRecord(run.next_step, run.current, now, 1.0)
    run.records.append(record)
    if not await attempt(run, record):
        return
    node = run.tree[record.node]
    assert node.verdict is not None
    ruling = policy.decide(node.verdict, now, run.task.policy, node.measurement)
    kept = node.verdict.proven or ruling.choice == "approve"
    state = "kept" if kept else dropped_state(run, record)
    answer = Answer("approve" if kept else "reject", "replay", state, ruling.sentence)
    conclude(run, record, answer)

"""The loop of a session: plan, step, decide, until there is a reason to end."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from mtmc_engine.core.action import ScoredAction
from mtmc_engine.core.events import Notice, PlanProposed
from mtmc_engine.plan import policy
from mtmc_engine.plan.state_text import state_text
from mtmc_engine.schedule.legal import legal_actions
from mtmc_engine.session.attempt import take_step
from mtmc_engine.session.budget import budget_event
from mtmc_engine.session.decisions import confirm_stop
from mtmc_engine.session.inbox import Interrupted
from mtmc_engine.session.replay import replay
from mtmc_engine.session.requests import ReplayAsked, Stopped, serve_waiting
from mtmc_engine.session.run import (
    Run,
    StepRecord,
    best_events,
    node_event,
    plan_is_full,
    state_of,
)
from mtmc_engine.session.stale import Stale, check_fresh, wait_for_replay


async def walk(run: Run) -> str:
    """Take steps until the session ends: who stopped it, a word of SessionFinished."""
    act = _step
    while True:
        try:
            if ending := await _on_fresh_source(run, act):
                return ending
            act = _step
        except ReplayAsked:
            act = _replay
        except Stopped as stopped:
            return stopped.by
        except Interrupted:
            return "user"


async def _on_fresh_source(run: Run, act: Callable[[Run], Awaitable[str]]) -> str:
    """Act, or wait for the user where the file is not what the task was opened from."""
    try:
        if act is _step:
            await check_fresh(run.task)
        return await act(run)
    except Stale:
        await wait_for_replay(run)
        return ""


async def _replay(run: Run) -> str:
    await replay(run)
    return ""


async def _step(run: Run) -> str:
    """Take one step; "" where the session goes on."""
    if run.records and run.records[-1].choice is None:
        await take_step(run, run.records[-1])
        return ""
    await serve_waiting(run)
    if ending := policy.ended(run.tree, run.next_step, run.max_steps, run.options.until):
        run.outlet.notice(ending.sentence)
        return ending.stopped_by
    if sentence := run.meter.exceeded():
        run.outlet.notice(sentence)
        return "budget"
    if plan_is_full(run):
        run.outlet.notice("The plan is full: --steps allows more.")
        return "steps"
    _close_spent(run)
    option = await _next_option(run)
    if option is None or option.action.kind == "stop":
        return await _end_of_plan(run, option)
    await take_step(run, _begin(run, option))
    return ""


def _begin(run: Run, option: ScoredAction) -> StepRecord:
    assert run.proposal is not None
    first = not any(r.parent == run.current for r in run.records)
    record = StepRecord(
        step=run.next_step,
        parent=run.current,
        action=option.action,
        probability=option.probability,
        planner_seconds=run.proposal.seconds if first else 0.0,
    )
    run.records.append(record)
    return record


async def _end_of_plan(run: Run, option: ScoredAction | None) -> str:
    """The planner stops here, or nothing is left here: the best program may have more to give."""
    best = run.tree.best().id
    if run.current != best and (option is None or run.follows_policy):
        run.outlet.notice(f"Nothing is left to try at {run.current}: back to {best}.")
        run.current, run.proposal = best, None
        return ""
    if option is not None and not await confirm_stop(run, option.action):
        return ""
    return "planner"


def _close_spent(run: Run) -> None:
    """Give up the enabling steps whose further steps are spent."""
    closed = policy.close_branches(run.tree, run.next_step)
    if not closed:
        return
    changed = [run.tree.set_state(node, state) for node, state in closed]
    run.outlet.emit(*(node_event(run, node) for node in changed), *best_events(run))
    rejected = [node for node, state in closed if state == "rejected"]
    current = policy.next_node(run.tree, run.current, rejected)
    if current != run.current:
        run.current, run.proposal = current, None


async def _next_option(run: Run) -> ScoredAction | None:
    """The best option at the current node that was not tried, None where there is none.

    The plan made at a node serves until it is used up or a hint came in.
    """
    unread = run.hints_read < len(run.hints)
    if run.proposal is None or run.proposal.node != run.current or unread:
        await _propose(run)
    option = _untried(run)
    if option is None and run.proposal is not None and len(run.proposal.options) > 1:
        await _propose(run)
        option = _untried(run)
    return option


def _untried(run: Run) -> ScoredAction | None:
    assert run.proposal is not None
    tried = run.tried(run.current)
    for option in run.proposal.options:
        if option.action.kind == "stop" and run.current in run.refused_stops:
            continue
        if option.action.phrase not in tried:
            return option
    return None


async def _propose(run: Run) -> None:
    """Let the planner rank what is legal at the current node."""
    run.outlet.phase("plan")
    state = state_of(run)
    new_hints = run.hints[run.hints_read :]
    node = run.tree[run.current]
    tried = frozenset(run.tried(run.current))
    legal = legal_actions(run.task, node.program.schedule, run.task.device, tried)
    started, used = time.perf_counter(), run.meter.tokens
    options = await run.inbox.unless_interrupted(run.planner.propose(state, legal))
    text = state_text(state)
    run.proposal = PlanProposed(
        node=node.id,
        step=run.next_step,
        options=options,
        planner=run.planner.name,
        seconds=time.perf_counter() - started,
        state_text=text.prefix + text.changing,
        costs=state.costs,
    )
    run.hints_read += len(new_hints)
    read = [f"The plan of step {run.next_step} has read your hint: {hint}" for hint in new_hints]
    run.outlet.emit(run.proposal, *(Notice("info", text) for text in read))
    if run.meter.tokens != used:
        run.outlet.emit(budget_event(run.meter))

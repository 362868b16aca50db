"""The legal steps of a program state, best expected first, within the planner's budget."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from mtmc_engine.core.action import Action
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.actions import KERNEL_LEVEL, KINDS, OPERATOR_LEVEL
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.identity import Same
from mtmc_engine.schedule.phrases import PhraseBudget

MAX_ACTIONS = 20
# A step of the operator level opens others; this part of its region's time counts as expected.
_OPENS = 0.05


def legal_actions(
    task: Task, schedule: Schedule, device: DeviceCard, tried: frozenset[str] = frozenset()
) -> tuple[Action, ...]:
    """At most 20 legal steps of a state, best expected first, `stop` last.

    tried: phrases that were judged at this state; they are left out.
    All phrases together stay within the planner's budget of tokens.
    """
    context = _context(task, schedule, device)
    actions = _all_actions(context)
    stop = actions["stop"]
    budget = PhraseBudget()
    budget.take(stop.phrase)
    chosen: list[Action] = []
    for action in _distinct(context, actions, tried):
        if len(chosen) < MAX_ACTIONS - 1 and budget.take(action.phrase):
            chosen.append(action)
    return (*chosen, stop)


def _distinct(context: Context, actions: dict[str, Action], tried: frozenset[str]) -> list[Action]:
    """Steps that lead to different programs, none of them one that was judged; best first."""
    seen = {_result(context, actions[phrase]) for phrase in tried & actions.keys()}
    found: list[Action] = []
    for action in sorted(actions.values(), key=lambda action: -expected_gain_us(context, action)):
        result = _result(context, action)
        if action.kind != "stop" and action.phrase not in tried and result not in seen:
            seen.add(result)
            found.append(action)
    return found


def _result(context: Context, action: Action) -> bytes:
    """The same for steps that lead to the same program."""
    change = _change(context, action)
    gone = sorted(group.region for group in change.removed)
    return msgspec.json.encode((gone, change.added))


def _change(context: Context, action: Action) -> Change:
    return KINDS[action.kind].change(context, action)


def apply_action(task: Task, schedule: Schedule, action: Action) -> Schedule:
    """The schedule after a step. Raises UsageError where the step is not legal there."""
    if action.kind not in KINDS:
        raise UsageError(f"There is no step of kind {action.kind!r}: {', '.join(KINDS)} exist.")
    legal = parse_phrase(task, schedule, action.phrase)
    context = _context(task, schedule, task.device)
    return context.changed(_change(context, legal))


def parse_phrase(task: Task, schedule: Schedule, phrase: str) -> Action:
    """The legal step that a phrase names. Raises UsageError where there is none."""
    actions = _all_actions(_context(task, schedule, task.device))
    if phrase not in actions:
        raise UsageError(f"{phrase!r} is not legal in this program: choose a listed step.")
    return actions[phrase]


def _context(task: Task, schedule: Schedule, device: DeviceCard) -> Context:
    """The context of a state; those asked last are kept with all that they computed."""
    return _kept_context(Same(task), msgspec.json.encode(schedule), Same(device))


@lru_cache(maxsize=128)
def _kept_context(task: Same[Task], schedule: bytes, device: Same[DeviceCard]) -> Context:
    return Context(task.value, msgspec.json.decode(schedule, type=Schedule), device.value)


@lru_cache(maxsize=128)
def _actions_of(same: Same[Context]) -> dict[str, Action]:
    context = same.value
    kinds = OPERATOR_LEVEL if context.at_root else (*OPERATOR_LEVEL, *KERNEL_LEVEL)
    if context.edited_whole:
        kinds = ()
    found = [action for kind in (*kinds, KINDS["stop"]) for action in kind.legal(context)]
    return {action.phrase: action for action in found}


def _all_actions(context: Context) -> dict[str, Action]:
    """Every legal step of a state by its phrase."""
    return _actions_of(Same(context))


def expected_gain_us(context: Context, action: Action) -> float:
    """Estimated microseconds that a step saves, and a little for the steps that it opens."""
    change = _change(context, action)
    before_us = sum(context.costs[group.region].time_us for group in change.removed)
    after_us = sum(context.cost(group).time_us for group in change.added)
    opens = action.kind in {"lower", "fuse", "fuse_epilogue"}
    return before_us - after_us + (_OPENS * before_us if opens else 0.0)

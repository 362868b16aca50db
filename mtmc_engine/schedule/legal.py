"""The legal steps of a program state, best expected first, within the planner's budget."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import msgspec

from mtmc_engine.core.action import Action
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.actions import KERNEL_LEVEL, KINDS, OPERATOR_LEVEL, Kind
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.cost import is_known
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
    steps = _steps(_context(task, schedule, device))
    budget = PhraseBudget()
    budget.take("stop")
    chosen: list[Action] = []
    for step in _distinct(steps, tried):
        if len(chosen) < MAX_ACTIONS - 1 and budget.take(step.action.phrase):
            chosen.append(step.action)
    return (*chosen, steps["stop"].action)


@dataclass(frozen=True)
class _Step:
    """A legal action with what it does.

    gain_us: estimated time that it saves, and a little for the steps that it opens.
    result:  the same for steps that lead to the same program.
    """

    action: Action
    change: Change
    gain_us: float
    result: bytes


def _distinct(steps: dict[str, _Step], tried: frozenset[str]) -> list[_Step]:
    """Steps that lead to different programs, none of them one that was judged; best first."""
    seen = {steps[phrase].result for phrase in tried & steps.keys()}
    found: list[_Step] = []
    for step in sorted(steps.values(), key=lambda step: -step.gain_us):
        if step.action.kind != "stop" and step.result not in seen:
            seen.add(step.result)
            found.append(step)
    return found


def apply_action(task: Task, schedule: Schedule, action: Action) -> Schedule:
    """The schedule after a step. Raises UsageError where the step is not legal there."""
    if action.kind not in KINDS:
        raise UsageError(f"There is no step of kind {action.kind!r}: {', '.join(KINDS)} exist.")
    context = _context(task, schedule, task.device)
    step = _step(context, action.phrase)
    if not is_known(schedule):  # only what is asked for is rewritten
        return context.changed(KINDS[action.kind].change(context, step.action))
    return context.changed(step.change)


def parse_phrase(task: Task, schedule: Schedule, phrase: str) -> Action:
    """The legal step that a phrase names. Raises UsageError where there is none."""
    return _step(_context(task, schedule, task.device), phrase).action


def _context(task: Task, schedule: Schedule, device: DeviceCard) -> Context:
    """The context of a state; those asked last are kept with all that they computed."""
    return _kept_context(Same(task), msgspec.json.encode(schedule), Same(device))


@lru_cache(maxsize=128)
def _kept_context(task: Same[Task], schedule: bytes, device: Same[DeviceCard]) -> Context:
    return Context(task.value, msgspec.json.decode(schedule, type=Schedule), device.value)


def _steps(context: Context) -> dict[str, _Step]:
    """Every legal step of a state by its phrase."""
    return _steps_of(Same(context))


@lru_cache(maxsize=128)
def _steps_of(same: Same[Context]) -> dict[str, _Step]:
    context = same.value
    kinds = OPERATOR_LEVEL if context.at_root else (*OPERATOR_LEVEL, *KERNEL_LEVEL)
    if context.edited_whole:
        kinds = KERNEL_LEVEL
    return {
        action.phrase: _as_step(context, kind, action)
        for kind in (*kinds, KINDS["stop"])
        for action in kind.legal(context)
    }


def _step(context: Context, phrase: str) -> _Step:
    steps = _steps(context)
    if phrase not in steps:
        raise UsageError(f"{phrase!r} is not legal in this program: choose a listed step.")
    return steps[phrase]


def _as_step(context: Context, kind: Kind, action: Action) -> _Step:
    if not is_known(context.schedule):
        return _Step(action, Change(), 0.0, action.phrase.encode())
    change = kind.change(context, action)
    gone = sorted(group.region for group in change.removed)
    before_us = sum(context.costs[region].time_us for region in gone)
    later = context.under(change.rewrites) if change.rewrites else context
    after_us = sum(later.cost(group).time_us for group in change.added)
    opened_us = _OPENS * before_us if kind.NAME in {"lower", "fuse", "fuse_epilogue"} else 0.0
    result = msgspec.json.encode((gone, change.added, change.rewrites))
    return _Step(action, change, before_us - after_us + opened_us, result)

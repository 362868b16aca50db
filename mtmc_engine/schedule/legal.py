"""The legal steps of a program state, best expected first, within the planner's budget."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.actions import KERNEL_LEVEL, KINDS, OPERATOR_LEVEL
from mtmc_engine.schedule.context import Context
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
    context = Context(task, schedule, device)
    stop = KINDS["stop"].legal(context)
    budget = PhraseBudget()
    budget.take(stop[0].phrase)
    chosen: list[Action] = []
    for action in _ranked(context, [a for a in _all(context) if a.phrase not in tried]):
        if len(chosen) < MAX_ACTIONS - 1 and budget.take(action.phrase):
            chosen.append(action)
    return (*chosen, *stop)


def apply_action(task: Task, schedule: Schedule, action: Action) -> Schedule:
    """The schedule after a step. Raises UsageError where the step is not legal there."""
    context = Context(task, schedule, task.device)
    kind = KINDS.get(action.kind)
    if kind is None:
        raise UsageError(f"There is no step of kind {action.kind!r}: {', '.join(KINDS)} exist.")
    if context.at_root and kind in KERNEL_LEVEL:
        raise UsageError(f"{action.phrase!r} needs a kernel: lower {action.region} first.")
    for legal in kind.legal(context):
        if (legal.region, legal.other, legal.params) == (
            action.region,
            action.other,
            action.params,
        ):
            return kind.apply(context, legal)
    raise UsageError(f"{action.phrase!r} is not legal in this program: choose a listed step.")


def parse_phrase(task: Task, schedule: Schedule, phrase: str) -> Action:
    """The legal step that a phrase names. Raises UsageError where there is none."""
    context = Context(task, schedule, task.device)
    for action in [*_all(context), *KINDS["stop"].legal(context)]:
        if action.phrase == phrase:
            return action
    raise UsageError(f"{phrase!r} is not legal in this program: choose a listed step.")


def _all(context: Context) -> list[Action]:
    kinds = OPERATOR_LEVEL if context.at_root else (*OPERATOR_LEVEL, *KERNEL_LEVEL)
    return [action for kind in kinds for action in kind.legal(context)]


def _ranked(context: Context, actions: list[Action]) -> list[Action]:
    return sorted(actions, key=lambda action: -expected_gain_us(context, action))


def expected_gain_us(context: Context, action: Action) -> float:
    """Estimated microseconds that a step saves, and a little for the steps that it opens."""
    after = KINDS[action.kind].apply(context, action)
    before = {group.region: group for group in context.groups}
    gain = sum(context.costs[region].time_us for region in before)
    touched = 0.0
    for group in after.groups:
        if not group.region:
            continue
        if before.get(group.region) == group:
            gain -= context.costs[group.region].time_us
        else:
            gain -= context.cost(group).time_us
            touched += context.costs.get(group.region, context.cost(group)).time_us
    opens = action.kind in {"lower", "fuse", "fuse_epilogue"}
    return gain + (_OPENS * touched if opens else 0.0)

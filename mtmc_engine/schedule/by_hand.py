"""Steps of groups whose source a person or a language model wrote.

What reads their source is loaded when there is some: most sessions never need it.
"""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import ByHand
from mtmc_engine.schedule.context import Change, Context


def rewriting(context: Context, kind: str) -> list[Action]:
    """A step of this kind for every way of rewriting a by-hand group's source."""
    if not has_source(context):
        return []
    from mtmc_engine.schedule.source.steps import actions

    return actions(context, kind)


def rewritten(context: Context, action: Action) -> Change | None:
    """By-hand groups with their source rewritten; None where the step is about others."""
    if not has_source(context):
        return None
    from mtmc_engine.schedule.source.steps import change

    return change(context, action)


def has_source(context: Context) -> bool:
    """Whether any group is by hand."""
    return any(isinstance(group.form, ByHand) for group in context.groups)

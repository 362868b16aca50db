"""primitive: the language's own reduction, scan or product."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.by_hand import rewriting, rewritten
from mtmc_engine.schedule.context import Change, Context

NAME = "primitive"


def legal(context: Context) -> list[Action]:
    """Reductions and products that are written out; by hand only."""
    return rewriting(context, NAME)


def change(context: Context, action: Action) -> Change:
    """The group with its source rewritten."""
    changed = rewritten(context, action)
    assert changed is not None
    return changed

"""layout: convolutions and what follows them with channels last."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.rewriting import offered, started
from mtmc_engine.schedule.context import Change, Context

NAME = "layout"


def legal(context: Context) -> list[Action]:
    """Convolutions on tensor cores for which fewer conversions are left by estimate."""
    return offered(context, NAME)


def change(context: Context, action: Action) -> Change:
    """The chain in the other layout: conversions at its ends, weights converted once."""
    made = started(context, NAME, action.region)
    assert made is not None
    return made

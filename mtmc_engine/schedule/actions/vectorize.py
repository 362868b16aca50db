"""vectorize: wider loads and stores, more elements a thread."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.parameters import best_of, with_parameters
from mtmc_engine.schedule.by_hand import rewriting, rewritten
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds, percent

NAME = "vectorize"


def legal(context: Context) -> list[Action]:
    """Regions whose kernel can move more bytes a load."""
    found: list[Action] = []
    for group in context.groups:
        best = best_of(context, group, NAME)
        if best is not None:
            now = context.costs[group.region]
            reason = (
                f"{group.region} is bound by {now.bound} at {percent(now.of_peak)} of its "
                f"roofline: wider loads are estimated at {microseconds(best[1].time_us)} instead "
                f"of {microseconds(now.time_us)}."
            )
            phrase = f"vectorize {group.region}"
            found.append(Action(NAME, phrase, group.region, "", best[0], reason))
    return found + rewriting(context, NAME)


def change(context: Context, action: Action) -> Change:
    """The same group with other parameters, or with its source rewritten."""
    return rewritten(context, action) or with_parameters(context, action)

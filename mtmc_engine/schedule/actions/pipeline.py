"""pipeline: other numbers of stages or warps."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.parameters import ranked, with_parameters
from mtmc_engine.schedule.by_hand import rewriting, rewritten
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds, percent

NAME = "pipeline"

_PER_REGION = 2


def legal(context: Context) -> list[Action]:
    """Other stages or warps, the most promising of each region."""
    found: dict[str, Action] = {}
    for group in context.groups:
        for params, cost in ranked(context, group, NAME)[:_PER_REGION]:
            what = "stages" if "stages" in params else "warps"
            count = f"{params[what]} {what}" if params[what] != 1 else f"1 {what[:-1]}"
            phrase = f"pipeline {group.region} with {count}"
            now = context.costs[group.region]
            reason = (
                f"{group.region} is bound by {now.bound} at {percent(now.of_peak)} of its "
                f"roofline: with {count} it is estimated at {microseconds(cost.time_us)} instead "
                f"of {microseconds(now.time_us)}."
            )
            found.setdefault(phrase, Action(NAME, phrase, group.region, "", params, reason))
    return [*found.values(), *rewriting(context, NAME)]


def change(context: Context, action: Action) -> Change:
    """The same group with other parameters, or with its source rewritten."""
    return rewritten(context, action) or with_parameters(context, action)

"""one_pass: the statistics of a long row in one sweep."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.parameters import best_of, with_parameters
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import bytes_text

NAME = "one_pass"


def legal(context: Context) -> list[Action]:
    """Regions whose kernel sweeps its rows more than once."""
    found: list[Action] = []
    for group in context.groups:
        best = best_of(context, group, NAME)
        if best is None:
            continue
        params, cost = best
        now = context.costs[group.region]
        reason = (
            f"{group.region} reads its rows more than once: one sweep moves "
            f"{bytes_text(cost.bytes_moved)} instead of {bytes_text(now.bytes_moved)}."
        )
        found.append(Action(NAME, f"one pass {group.region}", group.region, "", params, reason))
    return found


def change(context: Context, action: Action) -> Change:
    """The same group with other parameters."""
    return with_parameters(context, action)

"""reorder: neighbouring programs share what they load."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.parameters import ranked, with_parameters
from mtmc_engine.schedule.by_hand import rewriting, rewritten
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import bytes_text

NAME = "reorder"


# How many other orders of one region are worth a planner's attention.
_PER_REGION = 2


def legal(context: Context) -> list[Action]:
    """Programs in another order, so that neighbours share what is cached.

    Of templated groups those whose operands are larger than half of L2.
    """
    found: list[Action] = []
    for group in context.groups:
        for params, _ in ranked(context, group, NAME)[:_PER_REGION]:
            rows = params["group_m"]
            reason = (
                f"{group.region} reads {bytes_text(context.costs[group.region].bytes_moved)} and "
                f"L2 holds {bytes_text(context.device.l2_bytes)}: groups of {rows} tile "
                f"row{'s' * (rows != 1)} change what neighbours find there."
            )
            phrase = f"reorder {group.region} by {rows}"
            found.append(Action(NAME, phrase, group.region, "", params, reason))
    return [*found, *rewriting(context, NAME)]


def change(context: Context, action: Action) -> Change:
    """The group with other parameters, or with its source rewritten."""
    return rewritten(context, action) or with_parameters(context, action)

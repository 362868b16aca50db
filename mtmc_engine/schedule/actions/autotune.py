"""autotune: a few configurations, measured on the GPU."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.parameters import best_of, with_parameters
from mtmc_engine.schedule.by_hand import rewriting, rewritten
from mtmc_engine.schedule.context import Change, Context

NAME = "autotune"


def legal(context: Context) -> list[Action]:
    """Kernels whose block sizes and warps may be chosen by measurement."""
    found: list[Action] = []
    for group in context.groups:
        best = best_of(context, group, NAME)
        if best is not None:
            reason = (
                f"{group.region} has one configuration: the best of a few is found by measuring, "
                "for each size."
            )
            phrase = f"autotune {group.region}"
            found.append(Action(NAME, phrase, group.region, "", best[0], reason))
    return [*found, *rewriting(context, NAME)]


def change(context: Context, action: Action) -> Change:
    """The group with its configurations listed, or with its source rewritten."""
    return rewritten(context, action) or with_parameters(context, action)

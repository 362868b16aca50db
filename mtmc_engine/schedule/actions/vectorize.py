"""vectorize: wider loads and stores, more elements a thread."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.parameters import best_of, with_parameters
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds, percent

NAME = "vectorize"

GUIDE = """\
Let each thread move 16 bytes at once.
1. Give a program enough elements: block >= 32 * warps * 16 bytes / element size.
2. Make neighbouring threads read neighbouring 16-byte pieces: one contiguous range per program,
   with tl.max_contiguous and tl.multiple_of only where the launcher guarantees them.
3. Keep the mask uniform along a piece wherever the size is a multiple of the width.
Pitfalls: a row stride that is not a multiple of the width breaks alignment; more elements a
thread cost registers."""


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
    return found


def change(context: Context, action: Action) -> Change:
    """The same group with other parameters."""
    return with_parameters(context, action)

"""one_pass: the statistics of a long row in one sweep."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.parameters import best_of, with_parameters
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import bytes_text

NAME = "one_pass"

GUIDE = """\
Compute statistics that need one another in one sweep over the row.
1. Softmax and logsumexp: keep a running maximum and a running sum; when the maximum grows, scale
   the sum by exp(old - new) before adding the block (Milakov and Gimelshein 2018).
2. Mean and variance: keep count, mean and M2 per lane and merge them at the end (Welford; Chan).
3. Sweep once more only to write a result as long as the row.
Pitfalls: a row of -inf must not turn into NaN (guard the difference of infinities); masked lanes
count as absent, not as zeros; E[x*x] - E[x]**2 cancels for a large mean and is not allowed."""


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

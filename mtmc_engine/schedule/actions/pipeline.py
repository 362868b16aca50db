"""pipeline: other numbers of stages or warps."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.parameters import ranked, with_parameters
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds, percent

NAME = "pipeline"

GUIDE = """\
Change how the kernel's loop overlaps loads with arithmetic, and nothing else.
1. Set num_stages (loads in flight) or num_warps (threads per program) at the launch.
2. More stages hide latency but take shared memory: (block_m + block_n) * block_k * element size
   each. More warps spread the accumulator over more registers.
Pitfalls: a loop shorter than the pipeline gains nothing; beyond shared memory the launch fails."""

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
    return list(found.values())


def change(context: Context, action: Action) -> Change:
    """The same group with other parameters."""
    return with_parameters(context, action)

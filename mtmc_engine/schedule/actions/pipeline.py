"""pipeline: other numbers of stages or warps."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Group, Param, Templated
from mtmc_engine.schedule.actions.parameters import ranked, with_parameters
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import percent

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
    found: list[Action] = []
    for group in context.groups:
        for params, _ in ranked(context, group, NAME)[:_PER_REGION]:
            what = "stages" if "stages" in params else "warps"
            phrase = f"pipeline {group.region} with {params[what]} {what}"
            reason = _reason(context, group, params, what)
            found.append(Action(NAME, phrase, group.region, "", params, reason))
    return list({action.phrase: action for action in reversed(found)}.values())[::-1]


def _reason(context: Context, group: Group, params: dict[str, Param], what: str) -> str:
    assert isinstance(group.form, Templated)
    now = context.costs[group.region]
    before = group.form.params.get(what, "the default")
    effect = "loads in flight" if what == "stages" else "threads a program"
    return (
        f"{group.region} is bound by {now.bound} at {percent(now.of_peak)} of its roofline: "
        f"{params[what]} {what} instead of {before} change the {effect}."
    )


def change(context: Context, action: Action) -> Change:
    """The same group with other parameters."""
    return with_parameters(context, action)

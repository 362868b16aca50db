"""retile: other block sizes."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Group, Templated
from mtmc_engine.schedule.actions.parameters import changed_form, ranked, with_parameters
from mtmc_engine.schedule.by_hand import rewriting, rewritten
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import percent
from mtmc_engine.schedule.templates import tile_code

NAME = "retile"

# How many other tiles of one region are worth a planner's attention.
_PER_REGION = 3


def legal(context: Context) -> list[Action]:
    """Other block sizes, the most promising of each region."""
    found: list[Action] = []
    for group in context.groups:
        if isinstance(group.form, Templated):
            found += _of_group(context, group, group.form)
    return found + rewriting(context, NAME)


def _of_group(context: Context, group: Group, form: Templated) -> list[Action]:
    """One step for each other tile code, the fastest parameters of each."""
    present, now = tile_code(form), context.costs[group.region]
    found: dict[str, Action] = {}
    for params, cost in ranked(context, group, NAME):
        code = tile_code(changed_form(form, params))
        reason = (
            f"{group.region} reaches {percent(now.of_peak)} of its roofline with {present}; "
            f"the estimate for {code} is {percent(cost.of_peak)}."
        )
        phrase = f"retile {group.region} to {code}"
        if code != present:
            found.setdefault(code, Action(NAME, phrase, group.region, "", params, reason))
    return list(found.values())[:_PER_REGION]


def change(context: Context, action: Action) -> Change:
    """The same group with other parameters, or with its source rewritten."""
    return rewritten(context, action) or with_parameters(context, action)

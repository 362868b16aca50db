"""retile: other block sizes."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Group, Templated
from mtmc_engine.schedule.actions.parameters import changed_form, ranked, with_parameters
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import percent
from mtmc_engine.schedule.templates import tile_code

NAME = "retile"

GUIDE = """\
Change the block sizes of the region's kernel and nothing else.
1. Products: larger tiles reuse each loaded element more often; smaller ones fill the card when
   the result is small. Keep (block_m + block_n) * block_k * stages * element size within shared
   memory and block_m * block_n / (32 * warps) accumulators within 255 registers.
2. Rows: more rows a program for short rows, larger column blocks for long ones.
3. Change the grid with the blocks, and keep sizes powers of two.
Pitfalls: tl.dot needs every side at least 16; a tile wider than the matrix wastes arithmetic."""

# How many other tiles of one region are worth a planner's attention.
_PER_REGION = 3


def legal(context: Context) -> list[Action]:
    """Other block sizes, the most promising of each region."""
    found: list[Action] = []
    for group in context.groups:
        if isinstance(group.form, Templated):
            found += _of_group(context, group, group.form)
    return found


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
    """The same group with other parameters."""
    return with_parameters(context, action)

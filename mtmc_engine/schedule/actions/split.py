"""split: several programs share a long row, or the long inner dimension of a product."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Templated
from mtmc_engine.schedule.actions.parameters import best_of, with_parameters
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds, percent
from mtmc_engine.schedule.templates import program_count

NAME = "split"


def legal(context: Context) -> list[Action]:
    """Kernels with too few programs to fill the card, each with enough work to share."""
    found: list[Action] = []
    for group in context.groups:
        if not isinstance(group.form, Templated):
            continue
        programs = program_count(context.graph, group.nodes, group.form)
        best = best_of(context, group, NAME)
        if best is None or programs >= 2 * context.device.sms:
            continue
        now = context.costs[group.region]
        reason = (
            f"{group.region} has {programs} programs for {context.device.sms} multiprocessors and "
            f"reaches {percent(now.of_peak)} of its roofline: shared, it is estimated at "
            f"{microseconds(best[1].time_us)} instead of {microseconds(now.time_us)}."
        )
        found.append(Action(NAME, f"split {group.region}", group.region, "", best[0], reason))
    return found


def change(context: Context, action: Action) -> Change:
    """The row template becomes the shared one; a product keeps its template."""
    return with_parameters(context, action)

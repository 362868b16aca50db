"""persist: one program a multiprocessor, each with several tiles."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Templated
from mtmc_engine.schedule.actions.parameters import best_of, with_parameters
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.templates import program_count

NAME = "persist"


def legal(context: Context) -> list[Action]:
    """Products with several tiles for each multiprocessor."""
    found: list[Action] = []
    for group in context.groups:
        best = best_of(context, group, NAME)
        if best is None or not isinstance(group.form, Templated):
            continue
        tiles = program_count(context.graph, group.nodes, group.form)
        reason = (
            f"{group.region} starts {tiles} programs: {context.device.sms} that stay take "
            f"{tiles / context.device.sms:.1f} tiles each and start once."
        )
        phrase = f"persist {group.region}"
        found.append(Action(NAME, phrase, group.region, "", best[0], reason))
    return found


def change(context: Context, action: Action) -> Change:
    """The same product on a persistent grid."""
    return with_parameters(context, action)

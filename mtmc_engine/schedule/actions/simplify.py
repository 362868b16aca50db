"""simplify: algebra on a region's operators, and what depends on weights alone computed once."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions.rewriting import faster, offered, reason_of, started
from mtmc_engine.schedule.context import Change, Context

NAME = "simplify"


def legal(context: Context) -> list[Action]:
    """Regions in which a rule of algebra applies, where less work is left by estimate.

    Where there are several, one step for all of them, too: a network has a norm in every layer.
    """
    single = offered(context, NAME)
    regions = [action.region for action in single]
    change = started(context, NAME, *regions) if len(regions) > 1 else None
    times = faster(context, change) if change is not None else None
    if change is None or times is None:
        return single
    reason = reason_of(", ".join(regions), change, times)
    together = Action(NAME, "simplify all", regions[0], "", {"all": True}, reason)
    return [together, *single]


def change(context: Context, action: Action) -> Change:
    """The graph after the rules, its nodes in the groups that they came from."""
    regions = [action.region]
    if action.params.get("all"):
        regions = [single.region for single in offered(context, NAME)]
    made = started(context, NAME, *regions)
    assert made is not None
    return made

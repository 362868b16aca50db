"""library: the region's operators as library calls again."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Group, Library
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds, percent
from mtmc_engine.schedule.regions import number_of

NAME = "library"


def legal(context: Context) -> list[Action]:
    """Regions with a kernel of their own."""
    return [
        Action(NAME, f"library {group.region}", group.region, reason=_reason(context, group))
        for group in context.groups
        if not isinstance(group.form, Library)
    ]


def _reason(context: Context, group: Group) -> str:
    now = context.costs[group.region]
    calls = context.cost(Group(group.region, group.nodes, Library()))
    return (
        f"{group.region} reaches {percent(now.of_peak)} of its roofline; library calls are "
        f"estimated at {microseconds(calls.time_us)} instead of {microseconds(now.time_us)}."
    )


def change(context: Context, action: Action) -> Change:
    """A fused region falls apart into the regions that it was made of."""
    group = context.group(action.region)
    parts: dict[str, list[str]] = {}
    for name in group.nodes:
        if region := context.initial[name]:
            parts.setdefault(region, []).append(name)
    regions = sorted(parts, key=number_of)
    return Change((group,), tuple(Group(r, tuple(parts[r]), Library()) for r in regions))

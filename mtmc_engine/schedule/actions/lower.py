"""lower: this operator as a Triton kernel of the program's own."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Group, Library
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds, traffic

NAME = "lower"


def legal(context: Context) -> list[Action]:
    """Library regions that fit a template."""
    return [
        Action(NAME, f"lower {group.region}", group.region, reason=_reason(context, group))
        for group in context.groups
        if isinstance(group.form, Library) and context.lowered(group.nodes) is not None
    ]


def _reason(context: Context, group: Group) -> str:
    before, after = context.costs[group.region], context.cost(_lowered(context, group))
    return (
        f"{traffic(context, group)}; one kernel of its own is estimated at "
        f"{microseconds(after.time_us)} instead of {microseconds(before.time_us)}."
    )


def _lowered(context: Context, group: Group) -> Group:
    form = context.lowered(group.nodes)
    assert form is not None
    return Group(group.region, group.nodes, form)


def change(context: Context, action: Action) -> Change:
    """The region's group gets its default template."""
    group = context.group(action.region)
    return Change((group,), (_lowered(context, group),))

"""fuse_epilogue: keep the library's product or convolution, fuse all that follows."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Group, Library
from mtmc_engine.schedule.context import Change, Context, smallest
from mtmc_engine.schedule.evidence import bytes_text, saved_bytes

NAME = "fuse_epilogue"


def legal(context: Context) -> list[Action]:
    """Heavy library calls that at least two fusable regions follow."""
    found: list[Action] = []
    for group in context.groups:
        if isinstance(group.form, Library) and context.is_heavy(group):
            tail = followers(context, group)
            if len(tail) > 1:
                found.append(
                    Action(
                        NAME,
                        f"fuse after {group.region}",
                        group.region,
                        reason=_reason(context, group, tail),
                    )
                )
    return found


def followers(context: Context, head: Group) -> tuple[Group, ...]:
    """The largest set of groups after `head`, taken in execution order, that is one kernel."""
    chosen: list[Group] = []
    reached = {context.groups.index(head)}
    for at, group in enumerate(context.groups):
        if context.is_heavy(group) or not context.fusable(group) or at in reached:
            continue
        if not _reads(context, at, reached):
            continue
        nodes = context.union([*chosen, group])
        if nodes is not None and context.lowered(nodes) is not None:
            chosen.append(group)
            reached.add(at)
    return tuple(chosen)


def _reads(context: Context, at: int, writers: set[int]) -> bool:
    stack = list(context.flow.predecessors[at])
    seen: set[int] = set()
    while stack:
        before = stack.pop()
        if before in writers:
            return True
        if before >= len(context.groups) and before not in seen:
            seen.add(before)
            stack.extend(context.flow.predecessors[before])
    return False


def _reason(context: Context, head: Group, tail: tuple[Group, ...]) -> str:
    names = ", ".join(group.region for group in tail)
    saved = saved_bytes(context, tail)
    return (
        f"{names} follow {head.region} ({context.label(head.nodes)}), which stays a library "
        f"call: one kernel moves {bytes_text(saved)} less."
    )


def change(context: Context, action: Action) -> Change:
    """One templated group in place of all that follow."""
    tail = followers(context, context.group(action.region))
    nodes = context.union(tail)
    assert nodes is not None
    form = context.lowered(nodes)
    assert form is not None
    return Change(tail, (Group(smallest(tail), nodes, form),))

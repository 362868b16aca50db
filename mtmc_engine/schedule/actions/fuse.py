"""fuse: two neighbouring regions in one kernel."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Group, Library
from mtmc_engine.schedule.context import Change, Context, smallest
from mtmc_engine.schedule.evidence import bytes_text, saved_bytes

NAME = "fuse"


def legal(context: Context) -> list[Action]:
    """Neighbours that fit one template together, with no other region between them."""
    found: list[Action] = []
    for writer, group in enumerate(context.groups):
        for reader in sorted(_readers(context, writer)):
            pair = (group, context.groups[reader])
            if not all(context.fusable(item) for item in pair):
                continue
            nodes = context.union(pair)
            if nodes is not None and context.lowered(nodes) is not None:
                found.append(_action(context, pair))
    return list({action.phrase: action for action in found}.values())


def _readers(context: Context, writer: int) -> set[int]:
    """Named groups that read a value of this one, directly or through glue."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = list(context.flow.successors[writer])
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        if at < len(context.groups):
            found.add(at)
        else:
            stack.extend(context.flow.successors[at])
    return found


def _action(context: Context, pair: tuple[Group, Group]) -> Action:
    kept = smallest(pair)
    gone = next(group.region for group in pair if group.region != kept)
    return Action(NAME, f"fuse {gone} into {kept}", kept, gone, reason=_reason(context, pair))


def _reason(context: Context, pair: tuple[Group, Group]) -> str:
    writer, reader = pair
    saved = saved_bytes(context, pair)
    own = context.is_heavy(writer) and isinstance(writer.form, Library)
    tail = "as the epilogue of a product of our own" if own else "in one launch less"
    return (
        f"{reader.region} reads what {writer.region} writes: one kernel moves "
        f"{bytes_text(saved)} less, {tail}."
    )


def change(context: Context, action: Action) -> Change:
    """One templated group in place of two."""
    pair = (context.group(action.region), context.group(action.other))
    nodes = context.union(pair)
    assert nodes is not None
    form = context.lowered(nodes)
    assert form is not None
    return Change(pair, (Group(smallest(pair), nodes, form),))

"""lower: this operator as a Triton kernel of the program's own."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Group, Library
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds, traffic

NAME = "lower"

GUIDE = """\
Write the operators of the region as one Triton kernel with its launcher, and call the launcher
where the library was called.
1. Choose one program per block of elements (pointwise), per row or few rows (reductions), or per
   output tile (products). Take sizes and strides from the tensors at run time.
2. Load each external value once, keep everything between in registers in float32, store once.
3. Mask every load and store against the true sizes; give masked lanes the neutral element of the
   reduction that follows (-inf for max, 0 for sum).
4. Round where the reference rounds: cast to the result's dtype at the store.
Pitfalls: offsets beyond 2**31 need int64; a block size must be a power of two and a constexpr;
means divide by the true count, not by the block."""


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

"""Steps of by-hand groups: rewrites of their source as actions, and what they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.graph import ITEM_BYTES, refs
from mtmc_engine.core.program import ByHand, Group
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.source import (
    autotune,
    pipeline,
    primitive,
    reorder,
    retile,
    vectorize,
)
from mtmc_engine.schedule.source.listing import Listing, listing_of
from mtmc_engine.schedule.source.rewrite import Rewrite, Setting

Rewrites = Callable[[Listing, Setting], Iterable[Rewrite]]
REWRITES: dict[str, tuple[Rewrites, ...]] = {
    "retile": (retile.rewrites,),
    "pipeline": (pipeline.rewrites,),
    "reorder": (reorder.rewrites,),
    "autotune": (autotune.rewrites,),
    "vectorize": (vectorize.rewrites,),
    "primitive": (primitive.rewrites,),
}


@dataclass(frozen=True)
class Written:
    """A text that groups share, with the names of the regions in it.

    names: region by place; `alone` is the region of a text that belongs to one group.
    """

    text: str
    groups: tuple[Group, ...]
    names: dict[str, str]
    alone: str = ""

    def region(self, rewrite: Rewrite) -> str:
        """Name of the region that a rewrite acts on."""
        return self.names.get(rewrite.place) or self.names.get(rewrite.kernel) or self.alone


def actions(context: Context, kind: str) -> list[Action]:
    """A step for every rewrite of by-hand source, the first of those with the same phrase."""
    found: dict[str, Action] = {}
    for written, rewrite in _rewrites(context, kind):
        region = written.region(rewrite)
        phrase = f"{kind} {region} {rewrite.words}".strip()
        action = Action(kind, phrase, region, "", rewrite.params, rewrite.reason)
        found.setdefault(phrase, action)
    return list(found.values())


def change(context: Context, action: Action) -> Change | None:
    """The groups with their source rewritten; None where the action's region is not by hand."""
    for written, rewrite in _rewrites(context, action.kind):
        if f"{action.kind} {written.region(rewrite)} {rewrite.words}".strip() == action.phrase:
            form = ByHand(rewrite.source())
            return Change(
                written.groups, tuple(Group(g.region, g.nodes, form) for g in written.groups)
            )
    return None


def _rewrites(context: Context, kind: str) -> Iterator[tuple[Written, Rewrite]]:
    setting = setting_of(context.task)
    for written in texts(context):
        try:
            listing = listing_of(written.text)
        except UsageError:  # left to the gates
            continue
        for rewrites in REWRITES.get(kind, ()):
            for rewrite in rewrites(listing, setting):
                yield written, rewrite


def texts(context: Context) -> list[Written]:
    """By-hand texts of a program: one for a whole module, else one for each group."""
    by_hand = [group for group in context.groups if isinstance(group.form, ByHand)]
    if context.edited_whole:
        first = by_hand[0].form
        assert isinstance(first, ByHand)
        return [Written(first.source, tuple(by_hand), _names(context, first.source, by_hand))]
    return [
        Written(group.form.source, (group,), {}, group.region)
        for group in by_hand
        if isinstance(group.form, ByHand)
    ]


def _names(context: Context, text: str, groups: list[Group]) -> dict[str, str]:
    """Regions by place; where the graph's are shown, kernels stand for them in their order."""
    regions = context.schedule.regions
    if regions:
        return {region.place: region.id for region in regions}
    try:
        launches = listing_of(text).launches
    except UsageError:
        return {}
    kernels = list(dict.fromkeys(launch.kernel.name for launch in launches))
    names = [group.region for group in groups]
    if len(kernels) != len(names):
        return dict.fromkeys(kernels, names[0])
    return dict(zip(kernels, names, strict=True))


def setting_of(task: Task) -> Setting:
    """What rewrites may know of a task."""
    device = task.device
    tensors = task.inputs[0].tensors if task.inputs else ()
    floats = [ITEM_BYTES.get(s.dtype, 4) for s in tensors if "float" in s.dtype]
    results = [task.graph.value(name).numel for name in _results(task)]
    return Setting(
        item_bytes=max(floats, default=4),
        results=max(results, default=0),
        shared_bytes=device.shared_bytes,
        sms=device.sms,
        strict=not (task.tf32 or task.policy.precision == "tf32"),
    )


def _results(task: Task) -> list[str]:
    known = {value.name for value in task.graph.inputs} | {n.name for n in task.graph.nodes}
    return [name for name in refs(task.graph.outputs) if name in known]

"""What the action kinds look at: a task, a schedule, a card, and what the groups cost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import msgspec
from msgspec.structs import replace

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import Graph
from mtmc_engine.core.measurement import GroupCost
from mtmc_engine.core.program import ByHand, Group, Library, Param, Rewrite, Schedule, Templated
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.algebra import rewritten
from mtmc_engine.schedule.classes import HEAVY
from mtmc_engine.schedule.cost import cost_of, group_cost
from mtmc_engine.schedule.flowgraph import GroupGraph
from mtmc_engine.schedule.identity import Same
from mtmc_engine.schedule.labels import label_of
from mtmc_engine.schedule.regions import initial_regions, number_of, schedule_of
from mtmc_engine.schedule.render.group import is_writable
from mtmc_engine.schedule.templates import lowering, variants
from mtmc_engine.schedule.work import Facts, facts_of


@dataclass(frozen=True)
class Change:
    """What a step does to a schedule: some groups take the place of others.

    rewrites: of the graph, after those that the schedule has; `added` are groups of the graph
    that comes out.
    """

    removed: tuple[Group, ...] = ()
    added: tuple[Group, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()


@dataclass(frozen=True)
class Context:
    """One program state; answers are computed once and kept."""

    task: Task
    schedule: Schedule
    device: DeviceCard

    @cached_property
    def graph(self) -> Graph:
        """The task's graph after the schedule's rewritings."""
        return rewritten(self.task.graph, self.schedule.rewrites)

    @cached_property
    def initial(self) -> dict[str, str]:
        """The initial region of each node, "" for glue; nodes made since have their origin's."""
        return initial_regions(self.task.graph, self.graph)

    @cached_property
    def facts(self) -> Facts:
        return facts_of(self.graph)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups that have a region, in execution order."""
        return tuple(group for group in self.schedule.groups if group.region)

    @cached_property
    def at_root(self) -> bool:
        """Whether no group has a kernel of its own yet."""
        return all(isinstance(group.form, Library) for group in self.groups)

    @cached_property
    def flow(self) -> GroupGraph:
        """Who feeds whom; members are those of `schedule.groups`, glue one by one."""
        return GroupGraph(self.graph, self._members)

    @cached_property
    def _members(self) -> tuple[tuple[str, ...], ...]:
        named = [group.nodes for group in self.groups]
        taken = {name for nodes in named for name in nodes}
        return (*named, *((n.name,) for n in self.graph.nodes if n.name not in taken))

    @cached_property
    def costs(self) -> dict[str, GroupCost]:
        """Cost of each region."""
        return {c.region: c for c in cost_of(self.task, self.schedule, self.device)}

    def cost(self, group: Group) -> GroupCost:
        """Cost of a group that is not in the schedule; its share is left at 0."""
        return group_cost(self.facts, replace(self.task, device=self.device), group)

    def label(self, nodes: tuple[str, ...]) -> str:
        return label_of(self.graph, nodes)

    def lowered(self, nodes: tuple[str, ...]) -> Templated | None:
        """The default template of these nodes; None where they cannot be one kernel."""
        return _lowering(Same(self.graph), nodes, Same(self.device))

    def variants(self, group: Group, kind: str) -> tuple[dict[str, Param], ...]:
        """Other parameters of a templated group for an action kind, the present ones left out."""
        if not isinstance(group.form, Templated):
            return ()
        form = msgspec.json.encode(group.form)
        kinds = _variants(Same(self.graph), group.nodes, form, Same(self.device))
        found = kinds.get(kind, ())
        changes = (_changes(group.form, params) for params in found)
        return tuple(change for change in changes if change)

    def is_writable(self, nodes: tuple[str, ...], form: Templated) -> bool:
        """Whether these nodes can be rendered in a form."""
        return _is_writable(Same(self.graph), nodes, msgspec.json.encode(form))

    def is_heavy(self, group: Group) -> bool:
        """Whether the group holds a product, convolution, attention or recurrent call."""
        return any(self.facts.sorts[name] in HEAVY for name in group.nodes)

    def fusable(self, group: Group) -> bool:
        """Whether a step may take the group into another kernel: hand-written code stays."""
        return not isinstance(group.form, ByHand)

    @cached_property
    def edited_whole(self) -> bool:
        """Whether the whole module is by hand, so that no group can be rendered alone."""
        entry = self.task.defines
        defines = re.compile(rf"^(class|def) {re.escape(entry)}\b", re.MULTILINE)
        forms = [group.form for group in self.groups]
        return any(isinstance(form, ByHand) and defines.search(form.source) for form in forms)

    def union(self, groups: Iterable[Group]) -> tuple[str, ...] | None:
        """Nodes of the groups as one, with the glue between them, in execution order.

        None where another region lies on a path out of the union and back.
        """
        chosen = {self.groups.index(group) for group in groups}
        between = self.flow.between(chosen)
        if any(at < len(self.groups) for at in between):
            return None
        return self.flow.in_order(n for at in chosen | between for n in self._members[at])

    def changed(self, change: Change) -> Schedule:
        """The schedule with a change made, in a valid order."""
        if self.schedule.regions:
            return self._rewritten(change)
        gone = {group.region for group in change.removed}
        kept = [group for group in self.groups if group.region not in gone]
        rewrites = self.schedule.rewrites + change.rewrites
        graph = rewritten(self.task.graph, rewrites)
        return schedule_of(graph, [*kept, *change.added], rewrites)

    def under(self, rewrites: tuple[Rewrite, ...]) -> Context:
        """A context of the graph after more rewritings: what nodes are and cost there."""
        everything = self.schedule.rewrites + rewrites
        return _under(Same(self.task), everything, Same(self.device))

    def _rewritten(self, change: Change) -> Schedule:
        """Of a program that the user wrote in Triton: the changed source in all groups."""
        from mtmc_engine.schedule.original import rewritten_schedule

        forms = [group.form for group in change.added if isinstance(group.form, ByHand)]
        if not forms:
            return self.schedule
        return rewritten_schedule(forms[0].source, self.schedule)

    def group(self, region: str) -> Group:
        return self.schedule.group(region)


@lru_cache(maxsize=256)
def _under(task: Same[Task], rewrites: tuple[Rewrite, ...], device: Same[DeviceCard]) -> Context:
    return Context(task.value, Schedule((), rewrites=rewrites), device.value)


@lru_cache(maxsize=4096)
def _lowering(
    graph: Same[Graph], nodes: tuple[str, ...], device: Same[DeviceCard]
) -> Templated | None:
    form = lowering(graph.value, nodes, device.value)
    return form if form is not None and is_writable(graph.value, nodes, form) else None


@lru_cache(maxsize=4096)
def _variants(
    graph: Same[Graph], nodes: tuple[str, ...], form: bytes, device: Same[DeviceCard]
) -> dict[str, tuple[dict[str, Param], ...]]:
    templated = msgspec.json.decode(form, type=Templated)
    return variants(graph.value, nodes, templated, device.value)


@lru_cache(maxsize=8192)
def _is_writable(graph: Same[Graph], nodes: tuple[str, ...], form: bytes) -> bool:
    return is_writable(graph.value, nodes, msgspec.json.decode(form, type=Templated))


def smallest(groups: Iterable[Group]) -> str:
    """The region name that a fusion of these groups keeps."""
    return min((group.region for group in groups), key=number_of)


def _changes(form: Templated, params: dict[str, Param]) -> dict[str, Param]:
    if "template" in params:  # another template takes none of the parameters over
        return params
    return {name: value for name, value in params.items() if form.params.get(name) != value}

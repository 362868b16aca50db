"""Regions: the parts of an operator graph that a step can act on, with stable names."""

from __future__ import annotations

from collections.abc import Iterable

from mtmc_engine.core.graph import Graph, node_refs, refs
from mtmc_engine.core.program import Group, Library, Region, Schedule
from mtmc_engine.schedule.classes import GLUE, Sort, sorts_of, specs_of
from mtmc_engine.schedule.flowgraph import GroupGraph
from mtmc_engine.schedule.labels import label_of


def regions_of(graph: Graph) -> tuple[Region, ...]:
    """The initial regions, numbered in execution order.

    Each matrix product, reduction, normalisation, loss or other call is a region of its own; a
    connected chain of pointwise operators is one, unless another region lies on a path out of
    it and back. Views belong to the region that reads them where only one does.
    """
    return tuple(
        Region(f"r{number}", label_of(graph, names), names)
        for number, names in enumerate(_members(graph), start=1)
    )


def root(graph: Graph) -> Schedule:
    """The schedule that calls the library for every region; glue is in groups named ""."""
    return schedule_of(graph, [Group(r.id, r.nodes, Library()) for r in regions_of(graph)])


def regions_in(graph: Graph, schedule: Schedule) -> tuple[Region, ...]:
    """The regions of a schedule: names are those of its groups, glue left out."""
    return tuple(
        Region(group.region, label_of(graph, group.nodes), group.nodes)
        for group in schedule.groups
        if group.region
    )


def schedule_of(graph: Graph, groups: Iterable[Group]) -> Schedule:
    """A schedule of these groups in a valid order; all other nodes become glue.

    Raises ValueError where the groups feed each other in a circle.
    """
    named = list(groups)
    taken = {name for group in named for name in group.nodes}
    glue = [Group("", (n.name,), Library()) for n in graph.nodes if n.name not in taken]
    everything = named + glue
    order = GroupGraph(graph, tuple(group.nodes for group in everything)).order()
    return Schedule(_merge_glue([everything[at] for at in order]))


def _merge_glue(groups: list[Group]) -> tuple[Group, ...]:
    merged: list[Group] = []
    for group in groups:
        if merged and not group.region and not merged[-1].region:
            merged[-1] = Group("", merged[-1].nodes + group.nodes, Library())
        else:
            merged.append(group)
    return tuple(merged)


def number_of(region: str) -> int:
    """3 for "r3"."""
    return int(region.removeprefix("r"))


def _members(graph: Graph) -> list[tuple[str, ...]]:
    """Node names of each initial region, in order of their first node that is not a view."""
    sorts = sorts_of(graph)
    sets = _pointwise_chains(graph, sorts)
    _give_parts_to_makers(graph, sorts, sets)
    _give_views_to_readers(graph, sorts, sets)
    position = {node.name: at for at, node in enumerate(graph.nodes)}
    found: dict[int, list[str]] = {}
    for node in graph.nodes:
        if node.name in sets:
            found.setdefault(sets[node.name], []).append(node.name)
    ordered = sorted(
        found.values(),
        key=lambda names: min(position[n] for n in names if sorts[n] not in GLUE),
    )
    return [tuple(names) for names in ordered]


def _pointwise_chains(graph: Graph, sorts: dict[str, Sort]) -> dict[str, int]:
    """A set number for every node that computes: pointwise neighbours share one.

    Nodes are taken in execution order; each joins the sets of its pointwise operands as far as
    no path leads out of the joined set and back into it.
    """
    specs = specs_of(graph)
    position = {node.name: at for at, node in enumerate(graph.nodes)}
    users = users_of(graph)
    sets: dict[str, int] = {}
    members: dict[int, list[str]] = {}
    for node in graph.nodes:
        sort = sorts[node.name]
        if sort in GLUE or sort is Sort.PART:
            continue
        own = position[node.name]
        sets[node.name], members[own] = own, [node.name]
        if sort is not Sort.POINTWISE:
            continue
        for operand in dict.fromkeys(node_refs(node)):
            theirs = sets.get(operand)
            if theirs is None or theirs == own or sorts[operand] is not Sort.POINTWISE:
                continue
            joined = members[theirs] + members[own]
            if _same_shape_outside(joined, node.name, specs, users) and not _leaves_and_returns(
                graph, position, sets, members, (theirs, own)
            ):
                for name in members[theirs]:
                    sets[name] = own
                members[own] = joined
                del members[theirs]
    return sets


def _same_shape_outside(
    names: list[str], last: str, specs: dict[str, object], users: dict[str, set[str]]
) -> bool:
    """Whether every value that others read has the shape of the chain's last one."""
    shape = specs[last].shape
    return all(
        specs[name].shape == shape or users[name] <= set(names) for name in names if name != last
    )

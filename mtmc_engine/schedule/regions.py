"""Regions: the parts of an operator graph that a step can act on, with stable names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from mtmc_engine.core.graph import Graph, node_refs, refs
from mtmc_engine.core.program import Group, Library, Region, Rewrite, Schedule
from mtmc_engine.schedule.algebra import rewritten
from mtmc_engine.schedule.classes import GLUE, Sort, sorts_of, specs_of, users_of
from mtmc_engine.schedule.flowgraph import GroupGraph
from mtmc_engine.schedule.identity import Same
from mtmc_engine.schedule.labels import label_of


def regions_of(graph: Graph) -> tuple[Region, ...]:
    """The initial regions, numbered in execution order.

    Each matrix product, reduction, normalisation, loss or other call is a region of its own; a
    connected chain of pointwise operators is one, unless another region lies on a path out of
    it and back. Views belong to the region that reads them where only one does.
    """
    return _regions_of(Same(graph))


@lru_cache(maxsize=16)
def _regions_of(same: Same[Graph]) -> tuple[Region, ...]:
    graph = same.value
    return tuple(
        Region(f"r{number}", label_of(graph, names), names)
        for number, names in enumerate(_members(graph), start=1)
    )


def root(graph: Graph) -> Schedule:
    """The schedule that calls the library for every region; glue is in groups named ""."""
    return schedule_of(graph, [Group(r.id, r.nodes, Library()) for r in regions_of(graph)])


def regions_in(graph: Graph, schedule: Schedule) -> tuple[Region, ...]:
    """The regions of a schedule: names are those of its groups, glue left out.

    graph: the captured one, which the schedule rewrites.

    Of a program that the user wrote in Triton: kernels, loops, loads, dots and launches.
    """
    graph = rewritten(graph, schedule.rewrites)
    return schedule.regions or tuple(
        Region(group.region, label_of(graph, group.nodes), group.nodes)
        for group in schedule.groups
        if group.region
    )


def initial_regions(captured: Graph, graph: Graph) -> dict[str, str]:
    """The initial region of each node of a rewritten graph, "" for glue."""
    known = {name: region.id for region in regions_of(captured) for name in region.nodes}
    return {node.name: known.get(node.origin or node.name, "") for node in graph.nodes}


def schedule_of(
    graph: Graph, groups: Iterable[Group], rewrites: tuple[Rewrite, ...] = ()
) -> Schedule:
    """A schedule of these groups in a valid order; all other nodes become glue.

    rewrites: that led to the graph.

    Raises ValueError where the groups feed each other in a circle.
    """
    named = list(groups)
    taken = {name for group in named for name in group.nodes}
    glue = [Group("", (n.name,), Library()) for n in graph.nodes if n.name not in taken]
    everything = named + glue
    order = GroupGraph(graph, tuple(group.nodes for group in everything)).order()
    return Schedule(_merge_glue([everything[at] for at in order]), rewrites=rewrites)


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
    """Node names of each initial region, in the order in which regions run."""
    sorts = sorts_of(graph)
    sets = _pointwise_chains(graph, sorts)
    _give_parts_to_makers(graph, sorts, sets)
    _give_views_to_readers(graph, sorts, sets)
    found: dict[int | str, list[str]] = {}
    for node in graph.nodes:
        found.setdefault(sets.get(node.name, node.name), []).append(node.name)
    groups = GroupGraph(graph, tuple(tuple(names) for names in found.values()))
    return [groups.members[at] for at in groups.order() if groups.members[at][0] in sets]


def _pointwise_chains(graph: Graph, sorts: dict[str, Sort]) -> dict[str, int]:
    """A set number for every node that computes: pointwise neighbours share one.

    Nodes are taken in execution order; each joins the sets of its pointwise operands, latest
    first, as far as no path leads out of the joined set and back into it.
    """
    position = {node.name: at for at, node in enumerate(graph.nodes)}
    users = _readers(graph)
    shapes = {name: spec.shape for name, spec in specs_of(graph).items()}
    sets: dict[str, int] = {}
    members: dict[int, list[str]] = {}
    for at, node in enumerate(graph.nodes):
        if sorts[node.name] in GLUE or sorts[node.name] is Sort.PART:
            continue
        sets[node.name], members[at] = at, [node.name]
        if sorts[node.name] is not Sort.POINTWISE:
            continue
        operands = {n for n in node_refs(node) if n in sets and sorts[n] is Sort.POINTWISE}
        for operand in sorted(operands, key=position.__getitem__, reverse=True):
            theirs = sets[operand]
            if theirs == at:
                continue
            joined = set(members[theirs] + members[at])
            if _escapes(joined, node.name, shapes, users):
                continue
            if _returns(joined, users, sets, members):
                continue
            members[at] = members.pop(theirs) + members[at]
            sets.update(dict.fromkeys(members[at], at))
    return sets


def _readers(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Nodes that read each value; "" stands for the caller."""
    users = users_of(graph)
    for name in [*refs(graph.outputs), *graph.mutations.values()]:
        users[name] = (*users[name], "")
    return {**users, "": ()}


def _escapes(
    names: set[str],
    last: str,
    shapes: dict[str, tuple[int, ...]],
    users: dict[str, tuple[str, ...]],
) -> bool:
    """Whether a value of another shape than the chain's last one is read outside of it."""
    return any(shapes[name] != shapes[last] and not names.issuperset(users[name]) for name in names)


def _returns(
    names: set[str],
    users: dict[str, tuple[str, ...]],
    sets: dict[str, int],
    members: dict[int, list[str]],
) -> bool:
    """Whether a path leaves `names` and comes back; a set once entered may be left anywhere."""
    seen: set[str] = set()
    stack = [user for name in names for user in users[name] if user not in names]
    while stack:
        name = stack.pop()
        if name in names:
            return True
        if name in seen:
            continue
        seen.add(name)
        whole = members[sets[name]] if name in sets else [name]
        seen.update(whole)
        stack.extend(user for member in whole for user in users[member])
    return False


def _give_parts_to_makers(graph: Graph, sorts: dict[str, Sort], sets: dict[str, int]) -> None:
    for node in graph.nodes:
        if sorts[node.name] is Sort.PART:
            sets[node.name] = sets[node_refs(node)[0]]


def _give_views_to_readers(graph: Graph, sorts: dict[str, Sort], sets: dict[str, int]) -> None:
    users = _readers(graph)
    for node in reversed(graph.nodes):
        if sorts[node.name] is Sort.VIEW:
            readers = {sets.get(user) for user in users[node.name]}
            only = readers.pop() if len(readers) == 1 else None
            if only is not None:
                sets[node.name] = only

"""The graph of groups: who feeds whom, and which groups may become one without a cycle."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from mtmc_engine.core.graph import Graph, node_refs


@dataclass(frozen=True)
class GroupGraph:
    """Groups of nodes of one graph as a directed acyclic graph.

    members: node names of each group; every node of the graph is in exactly one group.
    """

    graph: Graph
    members: tuple[tuple[str, ...], ...]

    @cached_property
    def position(self) -> dict[str, int]:
        """Place of each node in execution order."""
        return {node.name: at for at, node in enumerate(self.graph.nodes)}

    @cached_property
    def group_at(self) -> dict[str, int]:
        """Index of the group that holds a node."""
        return {name: at for at, names in enumerate(self.members) for name in names}

    @cached_property
    def successors(self) -> tuple[frozenset[int], ...]:
        found: list[set[int]] = [set() for _ in self.members]
        for node in self.graph.nodes:
            reader = self.group_at[node.name]
            for name in node_refs(node):
                writer = self.group_at.get(name)
                if writer is not None and writer != reader:
                    found[writer].add(reader)
        return tuple(frozenset(items) for items in found)

    @cached_property
    def predecessors(self) -> tuple[frozenset[int], ...]:
        found: list[set[int]] = [set() for _ in self.members]
        for writer, readers in enumerate(self.successors):
            for reader in readers:
                found[reader].add(writer)
        return tuple(frozenset(items) for items in found)

    @cached_property
    def rank(self) -> dict[int, int]:
        """Place of each group in the topological order."""
        return {at: place for place, at in enumerate(self.order())}

    def between(self, groups: Iterable[int]) -> frozenset[int]:
        """Groups outside of `groups` on a path that leaves them and comes back."""
        chosen = frozenset(groups)
        places = [self.rank[at] for at in chosen]
        inner = range(min(places, default=0), max(places, default=0) + 1)
        after = self._reach(chosen, self.successors, inner)
        return frozenset((after & self._reach(chosen, self.predecessors, inner)) - chosen)

    def _reach(
        self, start: frozenset[int], step: Sequence[frozenset[int]], places: range
    ) -> set[int]:
        """Groups at these places of the order that steps lead to, one after the other."""
        seen: set[int] = set()
        stack = [after for at in start for after in step[at]]
        while stack:
            at = stack.pop()
            if at not in seen and self.rank[at] in places:
                seen.add(at)
                stack.extend(step[at])
        return seen

    def order(self) -> list[int]:
        """Group indices in a topological order, earliest nodes first where there is a choice.

        Raises ValueError where groups feed each other in a circle.
        """
        first = [min(self.position[name] for name in names) for names in self.members]
        waiting = [len(before) for before in self.predecessors]
        ready = [(first[at], at) for at, count in enumerate(waiting) if count == 0]
        heapq.heapify(ready)
        ordered: list[int] = []
        while ready:
            _, at = heapq.heappop(ready)
            ordered.append(at)
            for after in self.successors[at]:
                waiting[after] -= 1
                if waiting[after] == 0:
                    heapq.heappush(ready, (first[after], after))
        if len(ordered) != len(self.members):
            raise ValueError("groups feed each other in a circle")
        return ordered

    def in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        """Node names in execution order."""
        return tuple(sorted(names, key=self.position.__getitem__))

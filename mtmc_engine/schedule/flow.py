"""Which values enter and leave a group of nodes."""

from __future__ import annotations

from collections.abc import Collection

from mtmc_engine.core.graph import Graph, node_refs, refs


def inputs_of(graph: Graph, nodes: Collection[str]) -> tuple[str, ...]:
    """Names of the values that the group reads and does not make, in order of first use."""
    inside = set(nodes)
    read = (name for node in graph.nodes if node.name in inside for name in node_refs(node))
    return tuple(dict.fromkeys(name for name in read if name not in inside))


def outputs_of(graph: Graph, nodes: Collection[str]) -> tuple[str, ...]:
    """Names of the group's values that something outside of it needs, in execution order.

    Needed are values read by other nodes, returned by the graph, or written to a buffer.
    """
    inside = set(nodes)
    needed = set(refs(graph.outputs)) | set(graph.mutations.values())
    for node in graph.nodes:
        if node.name not in inside:
            needed.update(node_refs(node))
    return tuple(node.name for node in graph.nodes if node.name in inside and node.name in needed)

"""What a rule does to a graph: nodes in the place of others, values that stand for others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from mtmc_engine.core.graph import Arg, Graph, GraphInput, Node, TensorSpec, node_refs, refs


@dataclass(frozen=True)
class Edit:
    """nodes: in the place of a node. same: values that are another value from here on.

    prepared: nodes over parameters and buffers alone, computed once for many calls.
    """

    nodes: Mapping[str, tuple[Node, ...]] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)
    prepared: tuple[Node, ...] = ()


def applied(graph: Graph, edit: Edit) -> Graph:
    """The graph after an edit, without what nothing reads any more."""
    nodes = [new for node in graph.nodes for new in edit.nodes.get(node.name, (node,))]
    if edit.same:
        nodes = [
            replace(
                node, args=renamed(node.args, edit.same), kwargs=renamed(node.kwargs, edit.same)
            )
            for node in nodes
        ]
    made = tuple(
        GraphInput(node.name, "prepared", node.name, node.out[0]) for node in edit.prepared
    )
    return _pruned(
        replace(
            graph,
            inputs=graph.inputs + made,
            nodes=tuple(nodes),
            outputs=renamed(graph.outputs, edit.same),
            mutations={path: edit.same.get(v, v) for path, v in graph.mutations.items()},
            prepared=graph.prepared + edit.prepared,
        )
    )


def renamed(arg: Arg, same: Mapping[str, str]) -> Any:
    """An argument that reads other values instead, by name."""
    if isinstance(arg, str) and arg.startswith("%"):
        name = arg[1:]
        while same.get(name, name) != name:
            name = same[name]
        return f"%{name}"
    if isinstance(arg, list | tuple):
        return type(arg)(renamed(item, same) for item in arg)
    if isinstance(arg, dict):
        return {key: renamed(item, same) for key, item in arg.items()}
    return arg


def _pruned(graph: Graph) -> Graph:
    wanted = {*refs(graph.outputs), *graph.mutations.values()}
    nodes = _read(graph.nodes, wanted)
    read_in_call = set(wanted)
    prepared = _read(graph.prepared, wanted)
    inputs = tuple(
        value
        for value in graph.inputs
        if value.kind == "input"
        or value.name in (read_in_call if value.kind == "prepared" else wanted)
    )
    return replace(graph, inputs=inputs, nodes=nodes, prepared=prepared)


def _read(nodes: tuple[Node, ...], wanted: set[str]) -> tuple[Node, ...]:
    """Nodes that something reads; what they read is added to `wanted`. Opaque calls stay."""
    kept: list[Node] = []
    for node in reversed(nodes):
        if node.name in wanted or node.op == "opaque":
            kept.append(node)
            wanted.update(node_refs(node))
    return tuple(reversed(kept))


def spec_of(shape: tuple[int, ...], dtype: str, dims: tuple[str, ...] = ()) -> TensorSpec:
    """A spec of fixed sizes."""
    return TensorSpec(shape, dtype, dims or tuple(map(str, shape)))

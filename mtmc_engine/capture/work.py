"""How much work a graph is, roughly: what a single CPU thread would have to touch."""

from __future__ import annotations

from math import prod

from mtmc_engine.core.graph import Graph, Node, TensorSpec, node_refs

# Multiply-adds that one thread does in the time in which it touches one element in memory.
MACS_PER_ELEMENT = 16


def elements_of_work(graph: Graph) -> int:
    """Elements read and written by all nodes, with products counted by their multiply-adds."""
    specs = values_of(graph)
    return sum(_node_work(node, specs) for node in graph.nodes)


def elements_held(graph: Graph) -> int:
    """Elements of all inputs and of all values that the nodes make."""
    made = sum(spec.numel for node in graph.nodes for spec in node.out)
    return made + sum(i.spec.numel for i in graph.inputs)


def values_of(graph: Graph) -> dict[str, tuple[TensorSpec, ...]]:
    """Specs of every value by name."""
    specs = {i.name: (i.spec,) for i in graph.inputs}
    return specs | {node.name: node.out for node in graph.nodes}


def _node_work(node: Node, specs: dict[str, tuple[TensorSpec, ...]]) -> int:
    read = [spec for name in node_refs(node) for spec in specs.get(name, ())]
    touched = sum(s.numel for s in read) + sum(s.numel for s in node.out)
    return touched + _multiply_adds(node, read) // MACS_PER_ELEMENT


def _multiply_adds(node: Node, read: list[TensorSpec]) -> int:
    """For products: output elements times the length of the sum behind each."""
    name = node.op.split(".")[1] if "." in node.op else node.op
    out = node.out[0].numel if node.out else 0
    if name in ("linear", "matmul", "mm", "bmm") and len(read) >= 2:
        return out * read[0].shape[-1]
    if name in ("addmm", "baddbmm") and len(read) >= 3:
        return out * read[1].shape[-1]
    if name.startswith("conv") and len(read) >= 2:
        return out * prod(read[1].shape[1:])
    if name == "scaled_dot_product_attention" and len(read) >= 2:
        return 2 * out * read[1].shape[-2]
    return 0

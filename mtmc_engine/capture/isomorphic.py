"""Whether two exported graphs are the same but for their sizes."""

from __future__ import annotations

import re

import torch

from mtmc_engine.core.graph import Arg, Graph, GraphInput, Node, TensorSpec

# Names of size arguments in ATen's schemas.
_SIZE_NAMES = re.compile(
    r"sizes?|split_sizes?|output_size|normalized_shape|start|end|length|repeats"
)
_NUMBER = re.compile(r"(?<![A-Za-z_0-9])\d+")


def difference(original: Graph, twin: Graph) -> str:
    """The first place where the graphs differ in more than sizes, in words; "" where they agree.

    Names, operators, edges, dtypes, ranks, varying dimensions and all arguments must agree;
    integers may differ where the operator takes a size.
    """
    if not (original.captured and twin.captured):
        return "what could be captured"
    if len(original.inputs) != len(twin.inputs) or len(original.nodes) != len(twin.nodes):
        return "the number of operators"
    pairs = zip(original.inputs, twin.inputs, strict=True)
    found = [f"the input {a.name}" for a, b in pairs if not _same_input(a, b)]
    nodes = zip(original.nodes, twin.nodes, strict=True)
    found += [f"the operator {a.name}" for a, b in nodes if not _same_node(a, b)]
    results = [(g.outputs, g.mutations, g.containers) for g in (original, twin)]
    if results[0] != results[1]:
        found.append("the results")
    return found[0] if found else ""


def _same_input(a: GraphInput, b: GraphInput) -> bool:
    identity = (a.name, a.kind, a.target, a.values) == (b.name, b.kind, b.target, b.values)
    return identity and _same_spec(a.spec, b.spec)


def _same_spec(a: TensorSpec, b: TensorSpec) -> bool:
    alike = (a.dtype, a.order) == (b.dtype, b.order)
    return alike and [_shape_of(d) for d in a.dims] == [_shape_of(d) for d in b.dims]


def _shape_of(dim: str) -> str:
    """A dimension's expression without its numbers, except 0 and 1, which mean something."""
    return _NUMBER.sub(lambda found: found[0] if found[0] in ("0", "1") else "n", dim)


def _same_node(a: Node, b: Node) -> bool:
    if (a.name, a.op, a.module, a.line) != (b.name, b.op, b.module, b.line):
        return False
    if len(a.out) != len(b.out) or not all(map(_same_spec, a.out, b.out)):
        return False
    if len(a.args) != len(b.args) or a.kwargs.keys() != b.kwargs.keys():
        return False
    sizes = _size_arguments(a.op)
    pairs: list[tuple[int | str, Arg, Arg]] = [
        *((i, x, y) for i, (x, y) in enumerate(zip(a.args, b.args, strict=True))),
        *((key, a.kwargs[key], b.kwargs[key]) for key in a.kwargs),
    ]
    return all(_same_arg(x, y, key in sizes) for key, x, y in pairs)


def _same_arg(a: Arg, b: Arg, is_size: bool) -> bool:
    if isinstance(a, list | tuple):
        return (
            isinstance(b, list | tuple)
            and len(a) == len(b)
            and all(_same_arg(x, y, is_size) for x, y in zip(a, b, strict=True))
        )
    if is_size and type(a) is int and type(b) is int:
        return a == b or (a > 1 and b > 1)
    return type(a) is type(b) and bool(a == b)


def _size_arguments(op: str) -> frozenset[int | str]:
    """Positions and names of an operator's arguments that hold sizes."""
    if op == "sym":
        return frozenset(range(1, 4))
    namespace, _, rest = op.partition(".")
    name, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace, None), name, None)
    if packet is None or not overload:
        return frozenset()
    arguments = getattr(packet, overload)._schema.arguments
    sized = [(i, a.name) for i, a in enumerate(arguments) if _SIZE_NAMES.fullmatch(a.name)]
    return frozenset(place for pair in sized for place in pair)

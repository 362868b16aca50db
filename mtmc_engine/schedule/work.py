"""What an operator has to do: products, rows, reads and operations, from shapes alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from mtmc_engine.core.graph import Graph, Node, TensorSpec, node_refs, refs
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.classes import Sort, sorts_of, specs_of, users_of, word_of
from mtmc_engine.schedule.identity import Same
from mtmc_engine.schedule.roofline import Product, item_bytes


@dataclass(frozen=True)
class Facts:
    """A graph by name, computed once for many questions.

    users:   nodes that read a value; `reads`: values that a node reads, each once.
    results: values that the call returns or that a buffer holds afterwards.
    """

    graph: Graph
    specs: dict[str, TensorSpec]
    sorts: dict[str, Sort]
    nodes: dict[str, Node]
    users: dict[str, tuple[str, ...]]
    reads: dict[str, tuple[str, ...]]
    results: frozenset[str]

    def operands(self, node: Node) -> list[TensorSpec]:
        """Specs of the distinct tensors that a node reads, in order."""
        return [self.specs[name] for name in self.reads[node.name] if name in self.specs]


def facts_of(graph: Graph) -> Facts:
    """Everything that costs ask of a graph, kept for the graphs asked last."""
    return _facts_of(Same(graph))


@lru_cache(maxsize=16)
def _facts_of(same: Same[Graph]) -> Facts:
    graph = same.value
    nodes = {node.name: node for node in graph.nodes}
    return Facts(
        graph,
        specs_of(graph),
        sorts_of(graph),
        nodes,
        users_of(graph),
        {node.name: tuple(dict.fromkeys(node_refs(node))) for node in graph.nodes},
        frozenset([*refs(graph.outputs), *graph.mutations.values()]),
    )


def bytes_touched(
    facts: Facts, name: str, readers: Collection[str], *, compulsory: bool = False
) -> int:
    """Bytes of a value that these nodes read: once, and no more than views of it select.

    compulsory: count only what any program has to read, whatever the indices are.
    """
    spec = facts.specs.get(name)
    if spec is None:
        return 0
    total = 0
    for user in facts.users.get(name, ()):
        if user not in readers or facts.sorts[user] in {Sort.SIZE, Sort.FACTORY}:
            continue
        if facts.sorts[user] is Sort.VIEW:
            total += bytes_touched(facts, user, readers, compulsory=compulsory)
        else:
            total += _bytes_read(facts, facts.nodes[user], name, compulsory)
    return min(total, stored_bytes(facts, name))


def _bytes_read(facts: Facts, node: Node, name: str, compulsory: bool) -> int:
    """Bytes that one node reads of an operand: less than all where it picks elements."""
    word, whole = word_of(node), facts.specs[name].nbytes
    if node_refs(node)[0] != name:
        return whole
    if word in _SELECTING:
        return 0 if compulsory else node.out[0].nbytes
    if word.startswith(_SAMPLING):
        return min(whole, node.out[0].nbytes)
    if facts.sorts[node.name] is Sort.CONVOLUTION and "transpose" not in word:
        return int(whole * _part_under_kernel(facts, node))
    return whole


def _part_under_kernel(facts: Facts, node: Node) -> float:
    """Part of a convolution's input that is under its kernel: less than all for wide strides."""
    kernel = facts.operands(node)[1].shape[2:]
    strides = node.args[3] if len(node.args) > 3 else [1]
    steps = [strides] if isinstance(strides, int) else list(strides)
    steps = steps * len(kernel) if len(steps) == 1 else steps
    if len(steps) != len(kernel) or not all(isinstance(step, int) for step in steps):
        return 1.0
    return prod(min(1.0, size / step) for size, step in zip(kernel, steps, strict=True))


def stored_bytes(facts: Facts, name: str) -> int:
    """Bytes that a value occupies: a broadcast view occupies what it was made from."""
    size = facts.specs[name].nbytes if name in facts.specs else 0
    while name in facts.nodes and facts.sorts[name] is Sort.VIEW:
        name = next(iter(node_refs(facts.nodes[name])), "")
        if name in facts.specs:
            size = min(size, facts.specs[name].nbytes)
    return size


# Operators that read only the elements that they return, repeated indices once.
_SELECTING = frozenset({"embedding", "gather", "index", "index_select", "take", "take_along_dim"})
# Operators that may skip elements, but read at least as many as they return.
_SAMPLING = ("max_pool", "avg_pool", "adaptive", "upsample", "grid_sampler", "pixel")


def dot_mode(task: Task, dtype: str) -> str:
    """The arithmetic that a matrix product of this dtype may use: a key of the card's tflops."""
    if dtype in {"float16", "bfloat16"}:
        return {"float16": "fp16", "bfloat16": "bf16"}[dtype]
    return "tf32" if task.tf32 or task.policy.precision == "tf32" else "fp32"


def product_of(facts: Facts, node: Node) -> Product:
    """The matrix product that a matmul-like node computes."""
    word = word_of(node)
    operands = [facts.specs[name] for name in node_refs(node) if name in facts.specs]
    left, right = operands[1:3] if word in _BIAS_FIRST else operands[:2]
    out = node.out[0]
    k = left.shape[-1] if left.shape else 1
    if word == "linear":
        n = right.shape[0] if len(right.shape) > 1 else 1
    else:
        n = right.shape[-1] if len(right.shape) > 1 else 1
    batch = prod(right.shape[:-2])
    m = max(1, out.numel // max(1, batch * n))
    return Product(max(1, batch), m, max(1, n), max(1, k), item_bytes(left.dtype))


_BIAS_FIRST = frozenset({"addmm", "addbmm", "baddbmm", "addmv"})


def heavy_flops(facts: Facts, node: Node) -> int:
    """Operations of a convolution, attention or recurrent call."""
    word, sort = word_of(node), facts.sorts[node.name]
    operands = [facts.specs[name] for name in node_refs(node) if name in facts.specs]
    if sort is Sort.CONVOLUTION and len(operands) > 1:
        source, weight = operands[0], operands[1]
        per_element = 2 * weight.numel // max(1, weight.shape[0])
        transposed = "transpose" in word or (word == "convolution" and node.args[6] is True)
        return (source if transposed else node.out[0]).numel * per_element
    if sort is Sort.ATTENTION and len(operands) > 1:
        return 4 * operands[0].numel * operands[1].shape[-2]
    weights = sum(spec.numel for spec in operands[1:])
    steps = operands[0].numel // max(1, operands[0].shape[-1]) if operands else 0
    return 2 * weights * steps


def plain_flops(facts: Facts, node: Node) -> int:
    """Operations of a pointwise or row-wise node: one an element, times a small factor."""
    factor = _OPERATIONS.get(word_of(node), 1)
    seen = () if facts.sorts[node.name] is Sort.OTHER else facts.operands(node)
    elements = max((spec.numel for spec in (*seen, *node.out)), default=0)
    return factor * elements


_OPERATIONS = {
    "softmax": 5,
    "log_softmax": 5,
    "logsumexp": 4,
    "layer_norm": 7,
    "rms_norm": 5,
    "group_norm": 7,
    "cross_entropy_loss": 5,
    "gelu": 8,
    "silu": 4,
    "tanh": 4,
    "sigmoid": 4,
    "exp": 2,
    "erf": 4,
}


def rows_of(facts: Facts, node: Node) -> tuple[int, int]:
    """(rows, columns) of a row-wise node: a row is what is reduced to one set of statistics."""
    operands = facts.operands(node)
    spec = operands[0] if operands else node.out[0]
    word = word_of(node)
    columns = _columns(word, node, spec)
    return max(1, spec.numel // max(1, columns)), max(1, columns)


def _columns(word: str, node: Node, spec: TensorSpec) -> int:
    if word in {"layer_norm", "native_layer_norm", "rms_norm"}:
        return prod(int(size) for size in node.args[1] if isinstance(size, int)) or 1
    if word in {"group_norm", "native_group_norm"}:
        named = node.args[1:2] if word == "group_norm" else node.args[6:7]
        groups = next((count for count in named if isinstance(count, int)), 1)
        return spec.numel // max(1, spec.shape[0] * groups)
    if "batch_norm" in word or word == "instance_norm":
        return spec.numel // max(1, spec.shape[1] if len(spec.shape) > 1 else 1)
    if word == "cross_entropy_loss":
        return spec.shape[1] if len(spec.shape) > 1 else spec.numel
    if word.endswith("loss") or word in {"kl_div", "binary_cross_entropy"}:
        return spec.numel
    return prod(spec.shape[dim] for dim in reduced_dims(node, len(spec.shape)))


def reduced_dims(node: Node, rank: int) -> list[int]:
    """Dimensions that a reduction or softmax works along; all where none is named."""
    at = 2 if "vector_norm" in node.op or node.op.startswith("aten.norm") else 1
    dims = node.kwargs.get("dim", node.args[at] if len(node.args) > at else None)
    if isinstance(dims, bool) or not isinstance(dims, int | list | tuple) or refs(dims):
        return list(range(rank))
    listed = [dims] if isinstance(dims, int) else list(dims)
    return [dim % rank for dim in listed if rank] or list(range(rank))


def dependent_reductions(facts: Facts, names: tuple[str, ...]) -> int:
    """Longest chain of reductions in a group of which each needs the result of the one before."""
    depth: dict[str, int] = {}
    for name in names:
        node = facts.nodes[name]
        before = max((depth.get(read, 0) for read in node_refs(node)), default=0)
        own = _STATISTICS.get(word_of(node), 1) if facts.sorts[name] is Sort.ROWWISE else 0
        depth[name] = before + own
    return max(depth.values(), default=0)


# Statistics that need one another inside one operator: a maximum before a sum, a mean before
# a variance.
_STATISTICS = {
    "softmax": 2,
    "log_softmax": 2,
    "logsumexp": 2,
    "cross_entropy_loss": 2,
    "layer_norm": 2,
    "group_norm": 2,
    "var": 2,
    "std": 2,
}

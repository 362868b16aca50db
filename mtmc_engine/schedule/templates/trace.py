"""Expands the nodes of a group by the operator table into one tensor program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mtmc_engine.core.graph import Arg, Graph, Node, TensorSpec, node_refs
from mtmc_engine.schedule import (
    ops_activations,
    ops_arithmetic,
    ops_index,
    ops_losses,
    ops_matmul,
    ops_norms,
    ops_pool,
    ops_reductions,
    ops_scans,
    ops_select,
    ops_views,
)
from mtmc_engine.schedule.classes import Sort, sort_of, sorts_of, word_of
from mtmc_engine.schedule.flow import outputs_of
from mtmc_engine.schedule.ops import RULES, Unsupported, require
from mtmc_engine.schedule.templates.axes import leaves
from mtmc_engine.schedule.templates.sizes import symbol_values, text_of
from mtmc_engine.schedule.templates.tensors import Builder, Order, Tensor, Value

# Importing these fills the operator table.
RULE_MODULES = (
    ops_activations,
    ops_arithmetic,
    ops_index,
    ops_losses,
    ops_matmul,
    ops_norms,
    ops_pool,
    ops_reductions,
    ops_scans,
    ops_select,
    ops_views,
)


@dataclass(frozen=True)
class Output:
    """A value that leaves the group: its graph name, its tensor and how it is stored."""

    name: str
    tensor: Tensor
    spec: TensorSpec

    @property
    def stored(self) -> Tensor:
        """The tensor with its dimensions as the reference lays them in memory."""
        order = self.spec.order or range(len(self.tensor.dims))
        return Tensor(self.tensor.value, tuple(self.tensor.dims[dim] for dim in order))


@dataclass(frozen=True)
class Trace:
    """A group as one tensor program.

    values:  those that the outputs need, operands first.
    loads:   tensors that the group reads, by graph name, in order of first use.
    specs:   of the loads. before: views that the library makes first.
    orders:  of loads whose dimensions are taken in another order than their own.
    elementwise: whether results lie in memory as the first operand does.
    """

    values: tuple[Value, ...]
    loads: dict[str, Tensor]
    specs: dict[str, TensorSpec]
    outputs: tuple[Output, ...]
    before: tuple[str, ...] = ()
    orders: Mapping[str, Order] = field(default_factory=dict)
    elementwise: bool = False

    @property
    def layouts(self) -> list[Tensor]:
        """Tensors whose elements are all read: operands of a product, picked ones are not."""
        named = {value.source for value in self.values if value.kind == "load"}
        return [tensor for name, tensor in self.loads.items() if name in named]

    @property
    def products(self) -> tuple[Value, ...]:
        return tuple(value for value in self.values if value.kind == "matmul")

    @property
    def reductions(self) -> tuple[Value, ...]:
        """Reductions along dimensions of a tensor; those of a window are loops in an element."""
        return tuple(value for value in self.values if value.kind == "reduce" and _is_wide(value))

    @property
    def folds(self) -> tuple[Value, ...]:
        """Reductions and scans."""
        return tuple(
            value for value in self.values if value.kind in ("reduce", "scan") and _is_wide(value)
        )


def _is_wide(value: Value) -> bool:
    return not all(axis.window for axis in leaves(value.over))


def trace(graph: Graph, nodes: Sequence[str], orders: Mapping[str, Order] | None = None) -> Trace:
    """The tensor program of a group. Raises Unsupported where an operator has no rule.

    Views at the group's entrance become part of the indexing; where that fails, they are left
    to the library. orders: in which some loads lie in memory.
    """
    try:
        return _trace(graph, nodes, frozenset(), orders or {})
    except Unsupported:
        return _trace(graph, nodes, entrance_views(graph, nodes), orders or {}, plain=True)


def entrance_views(graph: Graph, nodes: Sequence[str]) -> frozenset[str]:
    """Views of the group that read nothing but values from outside and such views."""
    inside = set(nodes)
    sorts = sorts_of(graph)
    found: set[str] = set()
    for node in graph.nodes:
        made_inside = [name for name in node_refs(node) if name in inside and name not in found]
        if node.name in inside and sorts[node.name] in (Sort.VIEW, Sort.SIZE) and not made_inside:
            found.add(node.name)
    return frozenset(found)


def _trace(
    graph: Graph,
    nodes: Sequence[str],
    before: frozenset[str],
    orders: Mapping[str, Order],
    *,
    plain: bool = False,
) -> Trace:
    inside = set(nodes) - before
    tracer = _Tracer(graph, plain, orders)
    for node in graph.nodes:
        if node.name in inside:
            tracer.expand(node)
    outputs = []
    for name in outputs_of(graph, nodes):
        require(name not in before, "a view leaves the group")
        tensor, spec = tracer.results[name], graph.node(name).out[0]
        require(isinstance(tensor, Tensor), "a tuple leaves the group")
        require(tensor.shape == spec.shape, "an expanded tensor leaves the group")
        outputs.append(Output(name, tensor, spec))
    require(bool(outputs), "nothing leaves the group")
    live = _live(tracer.builder.values, outputs)
    loads = {n: t for n, t in tracer.builder.loads.items() if n in _read(live)}
    ordered = tuple(node.name for node in graph.nodes if node.name in before)
    result = Trace(
        live,
        loads,
        tracer.specs,
        tuple(outputs),
        ordered,
        {name: order for name, order in orders.items() if name in loads},
        _is_elementwise(graph, inside),
    )
    _check_axes(result)
    return result


def _is_elementwise(graph: Graph, names: set[str]) -> bool:
    """Whether nodes only compute element by element, or exchange dimensions."""
    sorts = sorts_of(graph)
    nodes = [node for node in graph.nodes if node.name in names]
    return all(
        (sorts[node.name] is Sort.POINTWISE or word_of(node) in _EXCHANGES)
        and "memory_format" not in node.kwargs
        for node in nodes
    )


_EXCHANGES = frozenset({"permute", "transpose", "t"})


def _read(values: Sequence[Value]) -> set[str]:
    """Graph values that the program reads from memory."""
    found = {value.source for value in values if value.source}
    for value in values:
        if value.product is not None:
            found |= {value.product.left, value.product.right}
    return found


class _Tracer:
    """Values of the graph by name while the nodes are expanded in order.

    plain: slices from outside are left to the library.
    """

    def __init__(self, graph: Graph, plain: bool, orders: Mapping[str, Order]) -> None:
        self.plain = plain
        self.graph = graph
        self.builder = Builder(symbols=symbol_values(graph), orders=orders)
        self.results: dict[str, Any] = {}
        self.specs: dict[str, TensorSpec] = {}

    def expand(self, node: Node) -> None:
        if node.op == "getitem":
            source = node.args[0][1:]
            known = source in self.results or self._looks_through(source)
            require(known, "one result of a node outside of the group")
            result = self.results[source][node.args[1]]
            require(result is not None, "a result that has no rule")
            self.results[node.name] = result
            return
        rule = RULES.get(node.op)
        if rule is None or not node.out:
            raise Unsupported(f"{node.op} has no rule")
        self.builder.specs = node.out
        args = [self.argument(arg) for arg in node.args]
        kwargs = {name: self.argument(arg) for name, arg in node.kwargs.items()}
        self._check_expanded(node)
        self.builder.specs = node.out
        try:
            self.results[node.name] = rule(self.builder, *args, **kwargs)
        except TypeError as error:
            raise Unsupported(f"{node.op} is called in a way that has no rule") from error

    def _check_expanded(self, node: Node) -> None:
        """What folds or moves elements has to see all of them, repeated ones too."""
        if sort_of(node) in (Sort.POINTWISE, Sort.VIEW):
            return
        for name in node_refs(node):
            tensor = self.results.get(name)
            if isinstance(tensor, Tensor):
                shape = self.graph.value(name).shape
                require(tensor.shape == shape, "a tensor that repeats elements is folded")

    def argument(self, arg: Arg) -> Any:
        if isinstance(arg, str) and arg.startswith("%"):
            return self.value(arg[1:])
        if isinstance(arg, list | tuple):
            return [self.argument(item) for item in arg]
        if arg in ("inf", "-inf", "nan"):
            return float(arg)
        return arg

    def value(self, name: str) -> Any:
        if name not in self.results:
            if self._is_size(name):
                return text_of(self.graph, self.graph.node(name))
            if not self._looks_through(name):
                self.specs[name] = self._spec(name)
                self.results[name] = self.builder.load(name, self.specs[name])
        return self.results[name]

    def _is_size(self, name: str) -> bool:
        node = next((node for node in self.graph.nodes if node.name == name), None)
        return node is not None and not node.out

    def _looks_through(self, name: str) -> bool:
        """Expands a slice or a constant from outside: the kernel reads what it was made from."""
        node = next((node for node in self.graph.nodes if node.name == name), None)
        if node is None or self.plain:
            return False
        made = node
        while made.op == "getitem":
            made = self.graph.node(made.args[0][1:])
        if word_of(made) not in _SEEN_THROUGH:
            return False
        specs = self.builder.specs
        for step in (made, node) if made is not node else (node,):
            if step.name not in self.results:
                self.expand(step)
        self.builder.specs = specs
        return True

    def _spec(self, name: str) -> TensorSpec:
        """Spec of a tensor from outside."""
        for graph_input in self.graph.inputs:
            if graph_input.name == name:
                return graph_input.spec
        node = self.graph.node(name)
        require(len(node.out) == 1, "one result of a node outside of the group")
        return node.out[0]


# Views that select and constants: reading through them saves the launcher a copy.
_SEEN_THROUGH = {
    *("chunk", "narrow", "select", "slice", "split", "split_with_sizes", "unbind"),
    *("full", "full_like", "ones", "ones_like", "zeros", "zeros_like"),
}


def _live(values: Sequence[Value], outputs: Sequence[Output]) -> tuple[Value, ...]:
    needed = {output.tensor.value for output in outputs}
    for value in reversed(values):
        if value in needed:
            needed.update(value.operands)
    return tuple(value for value in values if value in needed)


def _check_axes(program: Trace) -> None:
    """No tensor may have one axis twice, such as x + x.T in one group."""
    layouts = [tensor.dims for tensor in program.layouts]
    layouts += [output.tensor.dims for output in program.outputs]
    for dims in layouts:
        axes = [axis for dim in dims for axis in leaves(dim)]
        require(len(axes) == len(set(axes)), "a tensor meets itself transposed")

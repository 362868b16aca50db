"""Expands the nodes of a group by the operator table into one tensor program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mtmc_engine.core.graph import Arg, Graph, Node, TensorSpec, node_refs
from mtmc_engine.schedule import (
    ops_activations,
    ops_arithmetic,
    ops_losses,
    ops_matmul,
    ops_norms,
    ops_reductions,
    ops_select,
    ops_views,
)
from mtmc_engine.schedule.classes import Sort, sorts_of
from mtmc_engine.schedule.flow import outputs_of
from mtmc_engine.schedule.ops import RULES, Unsupported, require
from mtmc_engine.schedule.templates.axes import leaves
from mtmc_engine.schedule.templates.tensors import Builder, Tensor, Value

# Importing these fills the operator table.
RULE_MODULES = (
    ops_activations,
    ops_arithmetic,
    ops_losses,
    ops_matmul,
    ops_norms,
    ops_reductions,
    ops_select,
    ops_views,
)


@dataclass(frozen=True)
class Output:
    """A value that leaves the group: its graph name, its tensor and how it is stored."""

    name: str
    tensor: Tensor
    spec: TensorSpec


@dataclass(frozen=True)
class Trace:
    """A group as one tensor program.

    values:  those that the outputs need, operands first.
    loads:   tensors that the group reads, by graph name, in order of first use.
    specs:   of the loads. before: views that the library makes first.
    """

    values: tuple[Value, ...]
    loads: dict[str, Tensor]
    specs: dict[str, TensorSpec]
    outputs: tuple[Output, ...]
    before: tuple[str, ...] = ()

    @property
    def layouts(self) -> list[Tensor]:
        """Tensors that are read element by element: operands of a product are not."""
        named = {value.source for value in self.values if value.source}
        return [tensor for name, tensor in self.loads.items() if name in named]

    @property
    def products(self) -> tuple[Value, ...]:
        return tuple(value for value in self.values if value.kind == "matmul")

    @property
    def reductions(self) -> tuple[Value, ...]:
        return tuple(value for value in self.values if value.kind == "reduce")


def trace(graph: Graph, nodes: Sequence[str]) -> Trace:
    """The tensor program of a group. Raises Unsupported where an operator has no rule.

    Views at the group's entrance become part of the indexing; where that fails, they are left
    to the library.
    """
    try:
        return _trace(graph, nodes, frozenset())
    except Unsupported:
        views = entrance_views(graph, nodes)
        if not views:
            raise
        return _trace(graph, nodes, views)


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


def _trace(graph: Graph, nodes: Sequence[str], before: frozenset[str]) -> Trace:
    inside = set(nodes) - before
    tracer = _Tracer(graph)
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
    result = Trace(live, loads, tracer.specs, tuple(outputs), ordered)
    _check_axes(result)
    return result


def _read(values: Sequence[Value]) -> set[str]:
    """Graph values that the program reads from memory."""
    found = {value.source for value in values if value.source}
    for value in values:
        if value.product is not None:
            found |= {value.product.left, value.product.right}
    return found


class _Tracer:
    """Values of the graph by name while the nodes are expanded in order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder = Builder()
        self.results: dict[str, Any] = {}
        self.specs: dict[str, TensorSpec] = {}

    def expand(self, node: Node) -> None:
        if node.op == "getitem":
            source = node.args[0][1:]
            require(source in self.results, "one result of a node outside of the group")
            result = self.results[source][node.args[1]]
            require(result is not None, "a result that has no rule")
            self.results[node.name] = result
            return
        rule = RULES.get(node.op)
        if rule is None or not node.out:
            raise Unsupported(f"{node.op} has no rule")
        self.builder.spec = node.out[0]
        args = [self.argument(arg) for arg in node.args]
        kwargs = {name: self.argument(arg) for name, arg in node.kwargs.items()}
        try:
            self.results[node.name] = rule(self.builder, *args, **kwargs)
        except TypeError as error:
            raise Unsupported(f"{node.op} is called in a way that has no rule") from error

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
            spec = self._spec(name)
            if spec is None:
                return f"%{name}"
            self.specs[name] = spec
            self.results[name] = self.builder.load(name, spec)
        return self.results[name]

    def _spec(self, name: str) -> TensorSpec | None:
        """Spec of a tensor from outside; None for an integer over sizes."""
        for graph_input in self.graph.inputs:
            if graph_input.name == name:
                return graph_input.spec
        node = self.graph.node(name)
        require(len(node.out) <= 1, "one result of a node outside of the group")
        return node.out[0] if node.out else None


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

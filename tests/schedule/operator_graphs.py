"""Operator graphs written by hand, for tests that need no torch."""

from __future__ import annotations

from typing import Any

from mtmc_engine.core.graph import Graph, GraphInput, Node, TensorSpec
from mtmc_engine.core.task import InputSet, Policy, Task
from mtmc_engine.system.devices import card


class Net:
    """Collects nodes; each call returns the new value's name with its percent sign."""

    def __init__(self):
        self.inputs: list[GraphInput] = []
        self.nodes: list[Node] = []

    def input(self, name: str, *shape: int, dtype: str = "float32", kind: Any = "input") -> str:
        self.inputs.append(GraphInput(name, kind, name, TensorSpec(shape, dtype)))
        return f"%{name}"

    def weight(self, name: str, *shape: int, dtype: str = "float32") -> str:
        return self.input(name, *shape, dtype=dtype, kind="parameter")

    def node(self, op: str, args: tuple[Any, ...], *out: tuple[int, ...], dtype="float32") -> str:
        name = f"{op.split('.')[1] if '.' in op else op}_{len(self.nodes)}"
        specs = tuple(TensorSpec(tuple(shape), dtype) for shape in out)
        self.nodes.append(Node(name, op, args, {}, specs))
        return f"%{name}"

    def shape(self, value: str) -> tuple[int, ...]:
        for graph_input in self.inputs:
            if graph_input.name == value[1:]:
                return graph_input.spec.shape
        return next(n for n in self.nodes if n.name == value[1:]).out[0].shape

    def unary(self, word: str, x: str) -> str:
        return self.node(f"aten.{word}.default", (x,), self.shape(x))

    def binary(self, word: str, x: str, y: Any) -> str:
        shapes = [self.shape(v) for v in (x, y) if isinstance(v, str)]
        rank = max(len(s) for s in shapes)
        padded = [(1,) * (rank - len(s)) + s for s in shapes]
        return self.node(f"aten.{word}.Tensor", (x, y), tuple(map(max, *padded, (1,) * rank)))

    def pow(self, x: str, exponent: float) -> str:
        return self.node("aten.pow.Tensor_Scalar", (x, exponent), self.shape(x))

    def row(self, word: str, x: str, keep: bool = True) -> str:
        """A mean, sum or amax along the last dimension."""
        shape = (*self.shape(x)[:-1], 1) if keep else self.shape(x)[:-1]
        overload = {"mean": "dim", "sum": "dim_IntList", "amax": "default"}[word]
        return self.node(f"aten.{word}.{overload}", (x, [-1], keep), shape)

    def softmax(self, x: str) -> str:
        return self.node("aten.softmax.int", (x, -1), self.shape(x))

    def linear(self, x: str, outputs: int, bias: bool = True) -> str:
        at = len(self.nodes)
        args = [x, self.weight(f"w{at}", outputs, self.shape(x)[-1])]
        if bias:
            args.append(self.weight(f"b{at}", outputs))
        return self.node("aten.linear.default", tuple(args), (*self.shape(x)[:-1], outputs))

    def graph(self, *outputs: str) -> Graph:
        return Graph(tuple(self.inputs), tuple(self.nodes), list(outputs))


def task(graph: Graph, target: str = "sm_90", tf32: bool = False) -> Task:
    """A task around a graph."""
    tensors = tuple(i.spec for i in graph.inputs if i.kind == "input")
    return Task(
        file="/nowhere/op.py",
        digest="0",
        name="op",
        module="op",
        form="module",
        entry="Model",
        policy=Policy(),
        device=card(target),
        inputs=(InputSet("declared", tensors),),
        graph=graph,
        arguments=tuple(i.name for i in graph.inputs if i.kind == "input"),
        tf32=tf32,
    )


def gelu_from_parts(rows: int = 4096, columns: int = 4096) -> Graph:
    net = Net()
    x = net.input("x", rows, columns)
    half = net.binary("mul", x, 0.5)
    cubic = net.binary("mul", net.pow(x, 3.0), 0.044715)
    inner = net.binary("mul", net.binary("add", x, cubic), 0.7978845608)
    gate = net.binary("add", net.unary("tanh", inner), 1.0)
    return net.graph(net.binary("mul", half, gate))


def rms_norm(rows: int = 8192, columns: int = 4096) -> Graph:
    net = Net()
    x = net.input("x", rows, columns)
    mean = net.row("mean", net.pow(x, 2))
    scale = net.unary("rsqrt", net.binary("add", mean, 1e-6))
    return net.graph(net.binary("mul", net.binary("mul", x, scale), net.weight("w", columns)))


def linear_gelu_mean(rows: int = 4096, width: int = 1024) -> Graph:
    net = Net()
    y = net.linear(net.input("x", rows, width), width)
    gelu = net.unary("gelu", y)
    return net.graph(net.binary("sub", gelu, net.row("mean", gelu)))


def swiglu(rows: int = 4096, width: int = 1024, hidden: int = 2816) -> Graph:
    net = Net()
    x = net.input("x", rows, width)
    gate = net.unary("silu", net.linear(x, hidden, bias=False))
    return net.graph(net.binary("mul", gate, net.linear(x, hidden, bias=False)))


def softmax(rows: int = 4096, columns: int = 8192) -> Graph:
    net = Net()
    return net.graph(net.softmax(net.input("x", rows, columns)))

"""Tasks for the tests of plan and planner: graphs as capture writes them."""

from __future__ import annotations

from mtmc_engine.core.graph import Graph, GraphInput, Node, TensorSpec
from mtmc_engine.core.task import InputSet, Policy, Task
from mtmc_engine.system.devices import card


def spec(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "float32", tuple(map(str, shape)))


def node(name: str, op: str, *args, out: TensorSpec, **kwargs) -> Node:
    return Node(name, op, args, kwargs, (out,))


def task_of(name: str, graph: Graph, *shapes: tuple[int, ...], library: str = "allow") -> Task:
    return Task(
        file=f"/work/{name}.py",
        digest="0" * 64,
        name=name,
        module=name,
        form="module",
        entry="Model",
        policy=Policy(library=library),
        device=card("sm_90"),
        inputs=(InputSet("x".join(map(str, shapes[0])), tuple(spec(*s) for s in shapes)),),
        graph=graph,
        arguments=("x",),
    )


def linear_relu_softmax(rows: int = 4096, wide: int = 1024, out: int = 1024) -> Task:
    """Matmul with bias, relu, softmax over rows: three regions."""
    graph = Graph(
        inputs=(
            GraphInput("x", "input", "x", spec(rows, wide)),
            GraphInput("w", "parameter", "linear.weight", spec(out, wide)),
            GraphInput("b", "parameter", "linear.bias", spec(out)),
        ),
        nodes=(
            node("linear", "aten.linear.default", "%x", "%w", "%b", out=spec(rows, out)),
            node("relu", "aten.relu.default", "%linear", out=spec(rows, out)),
            node("softmax", "aten.softmax.int", "%relu", -1, out=spec(rows, out)),
        ),
        outputs=["%softmax"],
    )
    return task_of("block", graph, (rows, wide))


def pointwise_and_softmax(rows: int = 8192, cols: int = 4096) -> Task:
    """x * 2 + 1, then softmax over rows: memory-bound throughout."""
    graph = Graph(
        inputs=(GraphInput("x", "input", "x", spec(rows, cols)),),
        nodes=(
            node("mul", "aten.mul.Tensor", "%x", 2.0, out=spec(rows, cols)),
            node("add", "aten.add.Tensor", "%mul", 1.0, out=spec(rows, cols)),
            node("softmax", "aten.softmax.int", "%add", -1, out=spec(rows, cols)),
        ),
        outputs=["%softmax"],
    )
    return task_of("scaled_softmax", graph, (rows, cols))

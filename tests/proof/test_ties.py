"""Sizes that are called differently in a graph and yet belong together."""

import pytest

from mtmc_engine.core.graph import Graph, GraphInput, Node, TensorSpec
from mtmc_engine.proof.space import Space
from mtmc_engine.proof.ties import tied, ties

X = TensorSpec((2, 16, 32), "float32", ("s0", "s1", "s2"))
HALF = TensorSpec((2, 16, 16), "float32", ("s0", "s1", "s2 // 2"))
TABLE = TensorSpec((16, 16), "float32", ("s1", "s3"))


def graph(*specs, op="aten.mul.Tensor", out=HALF):
    given = tuple(GraphInput(f"v{i}", "input", f"v{i}", spec) for i, spec in enumerate(specs))
    node = Node("n", op, tuple(f"%{one.name}" for one in given), {}, (out,))
    return Graph(given, (node,), "%n")


def test_a_table_of_half_a_row():
    assert ties(graph(HALF, TABLE)) == {"s3": "s2 // 2"}
    assert tied("s3*4", {"s3": "s2 // 2"}) == "(s2 // 2)*4"


def test_keys_and_values():
    q, k, v = (
        TensorSpec((2, 4, 16, 8), "float32", ("s0", "s1", s, "s3")) for s in ("s2", "s4", "s5")
    )
    found = ties(graph(q, k, v, op="aten.scaled_dot_product_attention.default", out=q))
    assert found == {"s4": "s5"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TensorSpec((24, 40), "float32", ("s0", "s1")), TensorSpec((40,), "float32", ("s1",))),
        (
            TensorSpec((24, 40), "float32", ("s0", "s1")),
            TensorSpec((24, 1), "float32", ("s0", "1")),
        ),
        (TensorSpec((24, 40), "float32"), TensorSpec((24, 40), "float32")),
    ],
)
def test_nothing_to_tie(one, other):
    assert ties(graph(one, other)) == {}


def test_square_products_stay_free():
    a = TensorSpec((64, 64), "float32", ("s0", "s1"))
    b = TensorSpec((64, 64), "float32", ("s1", "s2"))
    assert ties(graph(a, b, op="aten.mm.default", out=a)) == {}


def test_shapes_follow_the_tie():
    space = Space(
        (X, TABLE),
        Graph(
            (GraphInput("x", "input", "x", X), GraphInput("c", "input", "c", TABLE)),
            (
                Node("h", "aten.slice.Tensor", ("%x",), {}, (HALF,)),
                Node("n", "aten.mul.Tensor", ("%h", "%c"), {}, (HALF,)),
            ),
            "%n",
        ),
    )
    assert space.symbols == ("s0", "s1", "s2")
    sizes = {"s0": 3, "s1": 5, "s2": 14}
    assert space.shapes(sizes) == ((3, 5, 14), (5, 7))
    assert space.outputs(sizes) == ((3, 5, 7),)

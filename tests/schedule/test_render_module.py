"""What rendered modules look like, without running them."""

import ast

import pytest

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import ByHand, Group, Library, Schedule
from mtmc_engine.schedule.ops import RULES
from mtmc_engine.schedule.regions import root, schedule_of
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.render.names import Names, identifier
from mtmc_engine.schedule.templates import lowering, tile_code, variants
from mtmc_engine.system.devices import card
from tests.schedule.operator_graphs import (
    Net,
    linear_gelu_mean,
    rms_norm,
    softmax,
    swiglu,
    task,
)

H200 = card("sm_90")
BY_HAND = '''
import math

import torch
import triton
import triton.language as tl


@triton.jit
def tiny_kernel(x_ptr):
    pass


def helper(x):
    return x


def tiny(x):
    """By hand."""
    return helper(x)
'''


def whole(graph, form=None):
    """All nodes as one group."""
    names = tuple(node.name for node in graph.nodes)
    return schedule_of(graph, [Group("r1", names, form or lowering(graph, names, H200))])


def lowered(graph):
    groups = [
        Group(g.region, g.nodes, lowering(graph, g.nodes, H200) or Library())
        for g in root(graph).groups
        if g.region
    ]
    return schedule_of(graph, groups)


@pytest.mark.parametrize(
    ("make", "small"),
    [
        (rms_norm, (32, 64)),
        (softmax, (16, 32)),
        (swiglu, (24, 32, 48)),
        (linear_gelu_mean, (32, 64)),
    ],
)
def test_same_schedule_renders_the_same_text_at_other_sizes(make, small):
    """A shrunk twin stands for the original only then."""
    large = make()
    schedule = lowered(large)
    assert render(task(large), schedule) == render(task(make(*small)), schedule)


def test_rms_norm_from_parts_is_one_kernel():
    graph = rms_norm()
    source = render(task(graph), whole(graph))
    assert source.count("@triton.jit") == 1
    assert "rms_norm_kernel" in source
    assert source.count("tl.where") == 0, "zeros in masked lanes need no select"


def test_names_of_launchers_do_not_clash():
    net = Net()
    first = net.softmax(net.input("x", 8, 16))
    graph = net.graph(net.softmax(first))
    groups = [
        Group(f"r{at}", (n.name,), lowering(graph, (n.name,), H200))
        for at, n in enumerate(graph.nodes, start=1)
    ]
    tree = ast.parse(render(task(graph), Schedule(tuple(groups))))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert len(functions) == len(set(functions)) == 4


def test_group_by_hand_is_inlined_and_its_last_plain_function_called():
    graph = softmax()
    source = render(task(graph), whole(graph, ByHand(BY_HAND)))
    assert source.count("import torch\n") == 1
    assert "import math\n" in source
    assert "def helper(x):\n    return x\n" in source
    assert "= tiny(x)" in source


def test_by_hand_module_is_the_program():
    graph = softmax()
    source = "class ModelNew:\n    pass\n"
    assert render(task(graph), whole(graph, ByHand(source))) == source


def test_by_hand_source_without_launcher_is_refused():
    graph = softmax()
    with pytest.raises(UsageError, match="launcher"):
        render(task(graph), whole(graph, ByHand("import torch\n")))


def test_precision_of_products_follows_the_task():
    net = Net()
    graph = net.graph(net.linear(net.input("x", 256, 128), 64))
    assert 'input_precision="ieee"' in render(task(graph), whole(graph))
    assert 'input_precision="tf32"' in render(task(graph, tf32=True), whole(graph))


def test_unknown_operators_have_no_lowering():
    net = Net()
    x = net.input("x", 8, 16)
    graph = net.graph(net.node("aten.sort.default", (x, 1), (8, 16)))
    assert lowering(graph, (graph.nodes[0].name,), H200) is None


def test_reductions_along_different_dimensions_have_no_common_kernel():
    net = Net()
    x = net.input("x", 8, 16, 32)
    rows = net.node("aten.sum.dim_IntList", (x, [2], True), (8, 16, 1))
    graph = net.graph(net.node("aten.sum.dim_IntList", (rows, [1], True), (8, 1, 1)))
    names = tuple(node.name for node in graph.nodes)
    assert lowering(graph, names, H200) is None
    assert lowering(graph, names[:1], H200) is not None


def test_variants_differ_from_the_form_and_are_few():
    for graph in (softmax(), rms_norm(), softmax(64, 1 << 17)):
        names = tuple(node.name for node in graph.nodes)
        form = lowering(graph, names, H200)
        for changes in variants(graph, names, form, H200).values():
            assert len(changes) <= 4
            assert all(form.with_params(**change) != form for change in changes)
            assert all(tile_code(form.with_params(**change)) for change in changes)


def test_few_long_rows_are_shared_by_programs():
    graph = softmax(64, 1 << 17)
    form = lowering(graph, (graph.nodes[0].name,), H200)
    assert form.template == "split"
    assert 64 * form.params["splits"] >= H200.sms


def test_long_softmax_may_become_one_pass():
    graph = softmax(512, 1 << 17)
    names = (graph.nodes[0].name,)
    form = lowering(graph, names, H200)
    assert form.template == "rows_loop"
    assert variants(graph, names, form, H200)["one_pass"] == ({"form": "one_pass"},)


def test_identifiers():
    assert identifier("linear+max") == "linear_max"
    assert identifier("2 steps") == "n2_steps"
    names = Names(["x"])
    assert [names.fresh("x"), names.fresh("x"), names.fresh("sum")] == ["x_2", "x_3", "sum_2"]


def test_table_covers_the_operators_that_are_promised():
    promised = """aten.softmax.int aten.layer_norm.default aten.rms_norm.default aten.linear.default
    aten.gelu.default aten.silu.default aten.cross_entropy_loss.default aten.logsumexp.default
    aten.log_softmax.int aten.mean.dim aten.sum.dim_IntList aten.amax.default aten.max.dim
    aten.var.dim aten.linalg_vector_norm.default aten.where.self aten.pow.Tensor_Scalar
    aten.erf.default aten.tanh.default aten.addmm.default aten.mm.default aten.matmul.default
    aten.bmm.default aten.group_norm.default aten.mse_loss.default"""
    assert set(promised.split()) <= RULES.keys()

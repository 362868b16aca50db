"""Regions: what is one, what it is called, and that names and order hold."""

from __future__ import annotations

from operator_graphs import Net, gelu_from_parts, linear_gelu_mean, rms_norm, swiglu

from mtmc_engine.core.graph import node_refs
from mtmc_engine.core.program import Group, Library
from mtmc_engine.schedule.labels import label_of
from mtmc_engine.schedule.regions import regions_in, regions_of, root, schedule_of


def names(graph):
    return [(region.id, region.label) for region in regions_of(graph)]


def test_gelu_built_from_parts_is_one_region_with_its_name():
    assert names(gelu_from_parts()) == [("r1", "gelu")]


def test_swiglu_is_recognised_between_the_products_and_numbered_as_it_runs():
    assert names(swiglu()) == [("r1", "linear"), ("r2", "linear"), ("r3", "swiglu")]


def test_reductions_stand_alone_and_a_fused_norm_is_recognised():
    graph = rms_norm()
    assert names(graph) == [("r1", "pow"), ("r2", "mean"), ("r3", "add+rsqrt+mul")]
    assert label_of(graph, [node.name for node in graph.nodes]) == "rms norm"


def test_a_label_has_at_most_three_words():
    graph = linear_gelu_mean()
    assert names(graph)[0] == ("r1", "linear")
    assert label_of(graph, [node.name for node in graph.nodes]) == "linear+gelu+…"
    assert label_of(graph, [node.name for node in graph.nodes[:3]]) == "linear+gelu+mean"


def test_an_idiom_needs_the_same_operand_everywhere():
    net = Net()
    x, y = net.input("x", 8, 8), net.input("y", 8, 8)
    graph = net.graph(net.binary("mul", x, net.unary("sigmoid", y)))
    assert names(graph) == [("r1", "sigmoid+mul")]


def test_a_number_hidden_in_a_division_or_subtraction_does_not_hide_the_idiom():
    net = Net()
    x = net.input("x", 8, 8)
    bottom = net.binary("add", net.unary("exp", net.unary("neg", x)), 1)
    assert names(net.graph(net.binary("div", x, bottom))) == [("r1", "silu")]


def test_a_chain_does_not_span_a_reduction_that_it_feeds():
    net = Net()
    e = net.unary("exp", net.input("x", 64, 64))
    graph = net.graph(net.binary("div", e, net.row("sum", e)))
    assert names(graph) == [("r1", "exp"), ("r2", "sum"), ("r3", "div")]


def test_two_chains_that_feed_each_other_are_not_joined_into_a_circle():
    """a1 feeds b1 and b2 feeds a2: {a1, a2} and {b1, b2} cannot both be groups."""
    net = Net()
    x, y = net.input("x", 16, 16), net.input("y", 16, 16)
    a1, b2 = net.unary("exp", x), net.unary("exp", y)
    b1, a2 = net.row("sum", a1), net.row("sum", b2)
    graph = net.graph(net.binary("add", a1, a2), net.binary("add", b2, b1))
    groups = root(graph).groups
    at = {name: i for i, group in enumerate(groups) for name in group.nodes}
    for node in graph.nodes:
        assert all(at[name] <= at[node.name] for name in node_refs(node) if name in at)


def test_parts_go_with_their_maker_and_views_with_their_only_reader():
    net = Net()
    x = net.input("x", 16, 64)
    both = net.node("aten.max.dim", (x, 1, True), (16, 1), (16, 1))
    value = net.node("getitem", (both, 0), (16, 1))
    flat = net.node("aten.view.default", (x, [8, 128]), (8, 128))
    graph = net.graph(value, net.softmax(flat))
    found = {region.label: region.nodes for region in regions_of(graph)}
    assert found["max"] == (both[1:], value[1:])
    assert found["softmax"] == (flat[1:], graph.nodes[-1].name)


def test_a_view_with_two_readers_and_sizes_are_glue():
    net = Net()
    x = net.input("x", 16, 64)
    size = net.node("sym", ("size(%x, 0)",))
    flat = net.node("aten.view.default", (x, [size, 64]), (16, 64))
    graph = net.graph(net.softmax(flat), net.row("sum", flat))
    groups = root(graph).groups
    assert [group.region for group in groups] == ["", "r1", "r2"]
    assert groups[0].nodes == (size[1:], flat[1:])


def test_a_value_of_another_shape_that_others_read_is_not_recomputed_inside_a_chain():
    net = Net()
    x, s = net.input("x", 64, 64), net.input("s", 64, 1)
    scale = net.unary("rsqrt", s)
    alone = net.graph(net.binary("mul", x, scale))
    assert len(regions_of(alone)) == 1
    shared = Net()
    x, s = shared.input("x", 64, 64), shared.input("s", 64, 1)
    scale = shared.unary("rsqrt", s)
    graph = shared.graph(shared.binary("mul", x, scale), scale)
    assert names(graph) == [("r1", "rsqrt"), ("r2", "mul")]


def test_a_fused_region_is_labelled_from_all_its_nodes():
    graph = linear_gelu_mean()
    first, second, *rest = regions_of(graph)
    fused = Group("r1", first.nodes + second.nodes, Library())
    schedule = schedule_of(graph, [fused, *(Group(r.id, r.nodes, Library()) for r in rest)])
    found = regions_in(graph, schedule)
    assert [region.id for region in found] == ["r1", "r3", "r4"]
    assert found[0].label == "linear+gelu"


def test_an_opaque_module_is_a_region_named_by_its_path():
    net = Net()
    x = net.input("x", 8, 8)
    graph = net.graph(net.node("opaque", (x,), (8, 8)))
    assert names(graph) == [("r1", "module")]


def test_long_chains_of_squares_are_labelled_quickly():
    net = Net()
    value = net.input("x", 8, 8)
    for _ in range(60):
        value = net.binary("mul", value, value)
    assert names(net.graph(value)) == [("r1", "mul")]

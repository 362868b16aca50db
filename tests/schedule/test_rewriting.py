"""Rewritings of the graph: where they apply, what they leave alone, what a schedule keeps."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from operator_graphs import Net, task

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import ByHand, Group, Library, Rewrite, Schedule, Templated
from mtmc_engine.schedule.algebra import rewritten
from mtmc_engine.schedule.cost import cost_of, estimate_us, floor_us
from mtmc_engine.schedule.legal import apply_action, legal_actions, parse_phrase
from mtmc_engine.schedule.regions import regions_in, root
from mtmc_engine.schedule.render import render


def conv(net, x, channels, bias=True, kernel=3):
    """A convolution of that kernel that keeps the image's size."""
    batch, inner, *space = net.shape(x)
    at = len(net.nodes)
    weight = net.weight(f"k{at}", channels, inner, kernel, kernel)
    args = [x, weight, net.weight(f"kb{at}", channels) if bias else None, [1, 1]]
    args.append([kernel // 2, kernel // 2])
    return net.node("aten.conv2d.default", tuple(args), (batch, channels, *space))


def norm(net, x, training=False):
    """A batch norm with running statistics, or with those of the batch."""
    channels = net.shape(x)[1]
    at = len(net.nodes)
    held = [net.weight(f"n{at}_{name}", channels) for name in ("w", "b", "mean", "var")]
    if training:
        op, args = "aten._native_batch_norm_legit_functional.default", (True, 0.1, 1e-5)
        shapes = [net.shape(x), *[(channels,)] * 4]
    else:
        op, args = "aten._native_batch_norm_legit_no_training.default", (0.1, 1e-5)
        shapes = [net.shape(x), (0,), (0,)]
    whole = net.node(op, (x, *held, *args), *shapes)
    return net.node("getitem", (whole, 0), net.shape(x))


def linear_sum(rows=4096, width=4096, hidden=4096, keep=True):
    net = Net()
    y = net.linear(net.input("x", rows, width), hidden)
    return net.graph(net.row("sum", y, keep))


def conv_relu(size=64):
    net = Net()
    y = conv(net, net.input("x", 16, 64, size, size), 64)
    return net.graph(net.unary("relu", y))


def phrases(operator, schedule=None):
    schedule = schedule or root(operator.graph)
    return {a.phrase for a in legal_actions(operator, schedule, operator.device)}


def after(operator, *steps):
    schedule = root(operator.graph)
    for phrase in steps:
        schedule = apply_action(operator, schedule, parse_phrase(operator, schedule, phrase))
    return schedule


def graph_of(operator, schedule):
    return rewritten(operator.graph, schedule.rewrites)


def ops(operator, schedule):
    return [node.op for node in graph_of(operator, schedule).nodes]


def test_a_sum_over_columns_becomes_a_product_with_summed_weights():
    operator = task(linear_sum())
    schedule = after(operator, "simplify r1")
    assert schedule.rewrites == (Rewrite("total", "linear_0"),)
    assert ops(operator, schedule) == ["aten.linear.default"]
    (node,) = graph_of(operator, schedule).nodes
    assert node.out[0].shape == (4096, 1)
    assert [n.op for n in graph_of(operator, schedule).prepared] == ["aten.sum.dim_IntList"] * 2
    assert [region.id for region in regions_in(operator.graph, schedule)] == ["r1"]


def test_what_needs_fewer_bytes_has_a_lower_floor():
    """The weights' sum is read in place of the weights: no time is suspicious for that."""
    operator = task(linear_sum())
    schedule = after(operator, "simplify r1")
    whole = floor_us(operator, operator.device)
    least = floor_us(operator, operator.device, schedule)
    assert least == pytest.approx(whole / 2, rel=0.01)
    assert floor_us(operator, operator.device, root(operator.graph)) == whole


def test_weights_that_the_call_is_given_are_summed_in_the_call():
    net = Net()
    x, w = net.input("x", 8192, 4096), net.input("w", 4096, 4096)
    y = net.node("aten.linear.default", (x, w), (8192, 4096))
    operator = task(net.graph(net.row("sum", y)))
    schedule = after(operator, "simplify r1")
    graph = graph_of(operator, schedule)
    assert not graph.prepared
    assert [node.op for node in graph.nodes] == ["aten.sum.dim_IntList", "aten.linear.default"]
    assert "_prepared" not in render(operator, schedule)


def test_a_sum_over_rows_or_of_something_that_others_read_stays():
    net = Net()
    y = net.linear(net.input("x", 512, 512), 512)
    operator = task(net.graph(y, net.row("sum", y)))
    assert "simplify r1" not in phrases(operator)
    net = Net()
    y = net.linear(net.input("x", 512, 512), 512)
    over_rows = net.node("aten.sum.dim_IntList", (y, [0], True), (1, 512))
    assert "simplify r1" not in phrases(task(net.graph(over_rows)))


def test_the_bias_of_a_convolution_moves_once_there_is_a_kernel_for_it():
    operator = task(conv_relu())
    assert "simplify r1" not in phrases(operator)
    schedule = after(operator, "lower r2", "simplify r1")
    assert isinstance(schedule.group("r2").form, Templated)
    graph = graph_of(operator, schedule)
    words = [graph.node(name).op.split(".")[1] for name in schedule.group("r2").nodes]
    assert words == ["view", "add", "relu"]
    assert graph.node(schedule.group("r1").nodes[0]).args[2:3] == (None,)
    before = after(operator, "lower r2")
    saved = [
        estimate_us(cost_of(operator, s, operator.device), operator.device)
        for s in (before, schedule)
    ]
    assert saved[1] < saved[0]


def test_a_region_falls_apart_into_its_initial_ones_after_a_rewriting():
    operator = task(conv_relu())
    schedule = after(operator, "lower r2", "simplify r1", "library r2")
    assert [(g.region, type(g.form)) for g in schedule.groups if g.region] == [
        ("r1", Library),
        ("r2", Library),
    ]
    assert schedule.rewrites


def test_a_depthwise_convolution_adds_its_bias_itself():
    net = Net()
    x = net.input("x", 16, 64, 64, 64)
    weight, bias = net.weight("k", 64, 1, 3, 3), net.weight("b", 64)
    args = (x, weight, bias, [1, 1], [1, 1], [1, 1], 64)
    y = net.node("aten.conv2d.default", args, (16, 64, 64, 64))
    operator = task(net.graph(net.unary("relu", y)))
    assert "simplify r1" not in phrases(operator, after(operator, "lower r2"))


def test_only_a_norm_with_running_statistics_goes_into_the_weights():
    for training in (False, True):
        net = Net()
        y = conv(net, net.input("x", 16, 64, 32, 32), 64, bias=False)
        operator = task(net.graph(net.unary("relu", norm(net, y, training))))
        assert ("simplify r1" in phrases(operator)) is False
        lowered = after(operator, "lower r3")
        assert ("simplify r1" in phrases(operator, lowered)) is not training


def test_a_norm_whose_buffers_the_call_moves_stays():
    net = Net()
    y = net.linear(net.input("x", 512, 256), 256)
    graph = net.graph(net.unary("relu", norm(net, y)))
    assert "simplify r1" in phrases(task(graph))
    name = next(i.name for i in graph.inputs if i.name.endswith("_var"))
    moving = replace(graph, mutations={name: name})
    assert "simplify r1" not in phrases(task(moving))


def test_two_layers_become_one_only_where_that_is_less_work():
    for hidden, fewer in ((1024, True), (64, False)):
        net = Net()
        inner = net.linear(net.input("x", 4096, 256), hidden)
        operator = task(net.graph(net.unary("relu", net.linear(inner, 256))))
        assert ("simplify r1" in phrases(operator)) is fewer


def test_a_term_of_an_input_is_not_dropped_before_a_softmax_and_a_maximum_is():
    """An infinity or NaN of the input would be lost with it."""
    net = Net()
    x, shift = net.input("x", 4096, 512), net.input("shift", 4096, 1)
    given = task(net.graph(net.softmax(net.binary("add", x, shift))))
    assert not {p for p in phrases(given) if p.startswith("simplify")}
    net = Net()
    x = net.input("x", 4096, 512)
    largest = task(net.graph(net.softmax(net.binary("sub", x, net.row("amax", x)))))
    schedule = after(largest, "simplify r3")
    assert ops(largest, schedule) == ["aten.softmax.int"]
    net = Net()
    along = net.binary("add", net.input("x", 4096, 512), net.weight("b", 512))
    assert not {p for p in phrases(task(net.graph(net.softmax(along)))) if "simplify" in p}


def test_what_the_caller_could_tell_apart_stays():
    """x * 1 is a new tensor, and so is each of two equal results."""
    net = Net()
    x = net.input("x", 512, 512)
    operator = task(net.graph(net.binary("mul", x, 1), net.unary("relu", x), net.unary("relu", x)))
    assert not {p for p in phrases(operator) if p.startswith("simplify")}


def test_a_negative_zero_survives():
    net = Net()
    x = net.unary("relu", net.binary("add", net.input("x", 512, 512), 0))
    assert not {p for p in phrases(task(net.graph(x))) if p.startswith("simplify")}


def test_code_by_hand_is_not_rewritten():
    operator = task(conv_relu())
    lowered = after(operator, "lower r2")
    group = lowered.group("r2")
    written = Group("r2", group.nodes, ByHand("def relu(x):\n    return x\n"))
    by_hand = lowered.replace("r2", written)
    assert "simplify r1" in phrases(operator, lowered)
    assert "simplify r1" not in phrases(operator, by_hand)


def test_a_rewriting_is_made_once():
    operator = task(linear_sum())
    schedule = after(operator, "simplify r1")
    with pytest.raises(UsageError, match="not legal"):
        apply_action(
            operator, schedule, parse_phrase(operator, root(operator.graph), "simplify r1")
        )
    with pytest.raises(ValueError, match="does not apply"):
        rewritten(operator.graph, (*schedule.rewrites, *schedule.rewrites))


def test_a_schedule_keeps_its_rewritings_on_disk_and_in_later_steps():
    operator = task(linear_sum())
    schedule = after(operator, "simplify r1")
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule) == schedule
    lowered = apply_action(operator, schedule, parse_phrase(operator, schedule, "lower r1"))
    assert lowered.rewrites == schedule.rewrites
    assert "self._prepared()" in render(operator, lowered)
    assert lowered.replace("r1", schedule.group("r1")).rewrites == schedule.rewrites


def test_one_step_simplifies_every_layer():
    net = Net()
    x = net.input("x", 1024, 1024)
    for _ in range(3):
        x = net.unary("relu", norm(net, net.linear(x, 1024)))
    operator = task(net.graph(x))
    schedule = after(operator, "simplify all")
    assert [rewrite.rule for rewrite in schedule.rewrites] == ["affine"] * 3
    assert not {p for p in phrases(operator, schedule) if p.startswith("simplify")}


def chain_of_convolutions(batch=32, size=56, depth=4):
    net = Net()
    x = net.input("x", batch, 64, size, size)
    for _ in range(depth):
        x = net.unary("relu", conv(net, x, 64, bias=False))
    return net.graph(x)


def test_a_chain_of_convolutions_is_laid_channels_last_as_a_whole():
    operator = task(chain_of_convolutions(), tf32=True)
    assert {p for p in phrases(operator) if p.startswith("layout")} == {"layout r1"}
    schedule = after(operator, "layout r1")
    graph = graph_of(operator, schedule)
    words = [node.op.split(".")[1] for node in graph.nodes]
    assert words == ["contiguous", *["conv2d", "relu"] * 4, "contiguous"]
    last = (0, 2, 3, 1)
    assert [node.out[0].order for node in graph.nodes] == [last] * 9 + [()]
    assert len(graph.prepared) == 4
    name = graph.outputs[0][1:]
    assert graph.node(name).out == operator.graph.node(name).out


def test_one_convolution_is_not_worth_two_conversions():
    operator = task(chain_of_convolutions(depth=1), tf32=True)
    assert not {p for p in phrases(operator) if p.startswith("layout")}


def test_depthwise_convolutions_and_views_end_a_chain():
    net = Net()
    x = net.input("x", 32, 64, 56, 56)
    y = net.unary(
        "relu", conv(net, net.unary("relu", conv(net, x, 64, bias=False)), 64, bias=False)
    )
    weight = net.weight("k", 64, 1, 3, 3)
    args = (y, weight, None, [1, 1], [1, 1], [1, 1], 64)
    y = net.node("aten.conv2d.default", args, (32, 64, 56, 56))
    flat = net.node("aten.view.default", (y, [32, -1]), (32, 64 * 56 * 56))
    operator = task(net.graph(flat))
    rewrites = (Rewrite("channels last", "conv2d_0"),)
    graph = rewritten(operator.graph, rewrites)
    laid = [node.name for node in graph.nodes if node.out[0].order]
    assert [name.split("_")[0] for name in laid] == ["x", "conv2d", "relu", "conv2d", "relu"]
    assert graph.node("relu_3").op == "aten.contiguous.default"


def test_a_reduction_reads_the_chain_as_it_lies():
    net = Net()
    y = net.unary("relu", conv(net, net.input("x", 32, 64, 56, 56), 64))
    pooled = net.node("aten.mean.dim", (y, [2, 3]), (32, 64))
    graph = rewritten(net.graph(pooled), (Rewrite("channels last", "conv2d_0"),))
    assert [node.op.split(".")[1] for node in graph.nodes] == [
        "contiguous",
        "conv2d",
        "relu",
        "mean",
    ]


def test_channels_have_to_be_where_the_weights_have_them():
    """A norm over the second dimension of a layer's rows, and one image without a batch."""
    net = Net()
    y = net.linear(net.input("x", 512, 64, 256), 256)
    operator = task(net.graph(net.unary("relu", norm(net, y))))
    assert "simplify r1" not in phrases(operator)
    net = Net()
    x, weight, bias = (
        net.input("x", 64, 256, 256),
        net.weight("k", 64, 64, 3, 3),
        net.weight("b", 64),
    )
    y = net.node("aten.conv2d.default", (x, weight, bias, [1, 1], [1, 1]), (64, 256, 256))
    scaled = net.binary("mul", y, net.weight("gain", 1, 256, 1))
    operator = task(net.graph(net.unary("relu", scaled)))
    assert "simplify r1" not in phrases(operator)
    assert "simplify r1" not in phrases(operator, after(operator, "lower r2"))


def test_exponentials_of_integers_are_no_softmax():
    net = Net()
    grown = net.node("aten.exp.default", (net.input("x", 512, 512, dtype="int64"),), (512, 512))
    operator = task(net.graph(net.binary("div", grown, net.row("sum", grown))))
    assert not {p for p in phrases(operator) if p.startswith("simplify")}


def test_a_maximum_of_two_tensors_names_no_dimension():
    net = Net()
    x, y = net.input("x", 512, 1), net.input("y", 512, 1)
    largest = net.node("aten.max.other", (x, y), (512, 1))
    operator = task(net.graph(net.unary("relu", largest)))
    assert not {p for p in phrases(operator) if p.startswith("simplify")}

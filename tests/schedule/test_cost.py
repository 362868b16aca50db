"""Costs: bytes and operations are those of the operators, and orderings are those of experience."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace
from operator_graphs import (
    Net,
    gelu_from_parts,
    linear_gelu_mean,
    rms_norm,
    softmax,
    task,
)

from mtmc_engine.core.program import ByHand, Group, Schedule, Templated
from mtmc_engine.schedule.cost import cost_of, estimate_us, floor_us
from mtmc_engine.schedule.regions import regions_of, root
from mtmc_engine.schedule.roofline import Product, Tile, library_product_us, product_us
from mtmc_engine.system.devices import card

H200 = card("sm_90")
A100 = card("sm_80")
MB = 4 * 4096 * 4096


def one_group(graph, form):
    return Schedule((Group("r1", tuple(node.name for node in graph.nodes), form),))


def cost(graph, form, device=H200):
    (found,) = cost_of(task(graph), one_group(graph, form), device)
    return found


POINTWISE = Templated("pointwise", {"block": 1024, "warps": 4})
ROWS = Templated("rows", {"rows_per_program": 1, "warps": 8})


def looping(form):
    return Templated("rows_loop", {"form": form, "block_cols": 4096, "warps": 8})


def test_library_calls_read_their_inputs_and_write_their_results():
    """Seven operators on one 4096x4096 float32 tensor; the two with two tensors read both."""
    graph = gelu_from_parts()
    (found,) = cost_of(task(graph), root(graph), H200)
    assert found.bytes_moved == (8 * 2 + 2) * MB
    assert found.share == 1.0
    assert found.bound == "memory"


def test_one_kernel_moves_each_outside_value_once():
    graph = gelu_from_parts()
    found = cost(graph, POINTWISE)
    assert found.bytes_moved == 2 * MB
    assert 0.7 < found.of_peak <= 1.0


def test_a_fused_group_is_faster_than_its_parts():
    for graph, form in ((gelu_from_parts(), POINTWISE), (rms_norm(), ROWS)):
        apart = estimate_us(cost_of(task(graph), root(graph), H200), H200)
        assert cost(graph, form).time_us < apart / 2


def test_one_pass_is_faster_than_several_and_registers_beat_both():
    graph = softmax(4096, 8192)
    several, once = cost(graph, looping("multi_pass")), cost(graph, looping("one_pass"))
    assert several.bytes_moved == 4 * MB * 2
    assert once.bytes_moved == 3 * MB * 2
    assert cost(graph, ROWS).time_us < once.time_us < several.time_us


def test_a_reduction_without_a_long_result_needs_no_last_sweep():
    net = Net()
    x = net.input("x", 4096, 4096)
    graph = net.graph(net.row("sum", x))
    assert cost(graph, looping("multi_pass")).bytes_moved == MB + 4 * 4096


def test_a_slice_is_charged_for_what_it_selects():
    net = Net()
    x = net.input("x", 4096, 4096)
    part = net.node("aten.slice.Tensor", (x, 1, 0, 1024), (4096, 1024))
    graph = net.graph(net.unary("exp", part))
    assert cost(graph, POINTWISE).bytes_moved == MB // 2
    assert floor_us(task(graph), H200) == pytest.approx(MB / 2 / 4.8e6)


def test_a_broadcast_operand_is_charged_for_what_it_stores():
    net = Net()
    x, row = net.input("x", 4096, 4096), net.input("row", 1, 4096)
    wide = net.node("aten.expand.default", (row, [4096, 4096]), (4096, 4096))
    graph = net.graph(net.binary("add", x, wide))
    assert cost(graph, POINTWISE).bytes_moved == 2 * MB + 4 * 4096


def test_wider_loads_and_enough_warps_are_not_slower():
    graph = gelu_from_parts()
    narrow = cost(graph, Templated("pointwise", {"block": 128, "warps": 4}))
    wide = cost(graph, Templated("pointwise", {"block": 2048, "warps": 4}))
    assert wide.time_us < narrow.time_us


def test_few_long_rows_leave_the_card_idle():
    many, few = softmax(8192, 4096), softmax(16, 8192 * 4096 // 16)
    per_row = looping("one_pass")
    assert cost(few, per_row).of_peak < cost(many, per_row).of_peak / 2


def test_the_floor_counts_what_matters_once():
    net = Net()
    x, unused = net.input("x", 4096, 4096), net.input("unused", 4096, 4096)
    graph = net.graph(net.unary("exp", x))
    assert unused == "%unused"
    assert floor_us(task(graph), H200) == pytest.approx(2 * MB / 4.8e6)
    assert floor_us(task(graph), A100) == pytest.approx(2 * MB / 2.039e6)


def test_a_returned_view_of_an_input_costs_nothing():
    net = Net()
    x = net.input("x", 4096, 4096)
    flat = net.node("aten.view.default", (x, [-1]), (4096 * 4096,))
    graph = net.graph(net.unary("exp", x), flat)
    assert floor_us(task(graph), H200) == pytest.approx(2 * MB / 4.8e6)


def test_no_estimate_is_below_the_floor():
    for graph, form in (
        (gelu_from_parts(), POINTWISE),
        (rms_norm(), ROWS),
        (softmax(), ROWS),
        (linear_gelu_mean(), ByHand("")),
    ):
        assert cost(graph, form).time_us > floor_us(task(graph), H200)


def test_shares_sum_to_one_and_glue_has_no_cost():
    graph = linear_gelu_mean()
    costs = cost_of(task(graph), root(graph), H200)
    assert [c.region for c in costs] == [r.id for r in regions_of(graph)]
    assert sum(c.share for c in costs) == pytest.approx(1.0)


def test_small_operators_are_bound_by_their_launch():
    net = Net()
    graph = net.graph(net.unary("relu", net.input("x", 32, 32)))
    (found,) = cost_of(task(graph), root(graph), H200)
    assert found.bound == "launch"


def test_tensor_cores_are_used_only_where_the_task_allows_them():
    graph = linear_gelu_mean()
    plain, fast = task(graph), task(graph, tf32=True)
    declared = replace(plain, policy=replace(plain.policy, precision="tf32"))
    linear = [cost_of(t, root(graph), H200)[0].time_us for t in (plain, fast, declared)]
    assert linear[0] > 3 * linear[1]
    assert linear[1] == linear[2]


SQUARE = Product(1, 4096, 4096, 4096, 2)
SKINNY = Product(1, 16, 4096, 4096, 2)


def tiled(product, *tile, device=H200, mode="bf16"):
    return product_us(device, product, Tile(*tile), mode)


def test_big_tiles_suit_big_products_and_small_tiles_skinny_ones():
    assert tiled(SQUARE, 128, 128, 64) < tiled(SQUARE, 64, 64, 64) < tiled(SQUARE, 32, 32, 32, 4)
    assert tiled(SKINNY, 16, 64, 64, 4) < tiled(SKINNY, 64, 64, 64) < tiled(SKINNY, 128, 128, 64)


def test_a_small_result_is_better_cut_into_more_tiles():
    narrow = Product(1, 512, 512, 4096, 2)
    assert tiled(narrow, 64, 64, 64, 4) < tiled(narrow, 128, 256, 64, 8)


def test_a_tile_that_does_not_fit_in_shared_memory_takes_for_ever():
    assert math.isinf(tiled(SQUARE, 256, 256, 128, 8, 4))
    assert math.isinf(tiled(SQUARE, 128, 128, 64, 8, 6, device=card("sm_86")))
    assert math.isfinite(tiled(SQUARE, 128, 128, 64, 8, 3))


def test_accumulators_beyond_the_register_file_are_punished():
    assert tiled(SQUARE, 256, 128, 32, 2) > 2 * tiled(SQUARE, 256, 128, 32, 8)


def test_stages_hide_loads_up_to_a_point():
    one, two, three, four = (tiled(SQUARE, 128, 128, 64, 8, stages) for stages in (1, 2, 3, 4))
    assert one > two > three
    assert abs(four - three) / three < 0.1


@pytest.mark.parametrize("product", [SQUARE, SKINNY, Product(8, 1024, 1024, 64, 2)])
def test_the_library_is_at_least_as_good_as_any_single_tile_of_ours(product):
    library = library_product_us(H200, product, "bf16", 0.0)
    shapes = ((128, 128, 32, 8), (64, 64, 32, 4), (16, 64, 64, 4), (128, 256, 32, 8))
    assert library <= 1.02 * min(tiled(product, *shape) for shape in shapes)


def test_a_plain_fp32_product_in_triton_is_slower_than_the_library():
    product = Product(1, 4096, 4096, 4096, 4)
    library = library_product_us(H200, product, "fp32", 0.0)
    assert product_us(H200, product, Tile(128, 128, 32), "fp32") > 1.3 * library


def test_a_kernel_that_does_not_fit_takes_the_whole_share():
    net = Net()
    graph = net.graph(net.linear(net.input("x", 1024, 1024), 1024))
    params = {"block_m": 256, "block_n": 256, "block_k": 128, "warps": 8, "stages": 4}
    found = cost(graph, Templated("matmul", params))
    assert math.isinf(found.time_us)
    assert found.share == 1.0
    assert found.of_peak == 0.0


def test_a_table_is_not_compulsory_since_indices_may_repeat():
    net = Net()
    table, at = net.weight("table", 50_000, 1024), net.input("at", 4096, dtype="int64")
    graph = net.graph(net.node("aten.embedding.default", (table, at), (4096, 1024)))
    assert floor_us(task(graph), H200) == pytest.approx((MB // 4 + 4096 * 8) / 4.8e6)
    (found,) = cost_of(task(graph), root(graph), H200)
    assert found.bytes_moved == MB // 2 + 4096 * 8


def test_a_convolution_with_wide_strides_need_not_read_everything():
    net = Net()
    x, w = net.input("x", 32, 64, 56, 56), net.weight("w", 128, 64, 1, 1)
    out = (32, 128, 28, 28)
    graph = net.graph(net.node("aten.conv2d.default", (x, w, None, [2, 2]), out))
    least = 4 * (32 * 64 * 56 * 56 // 4 + 128 * 64 + 32 * 128 * 28 * 28)
    assert floor_us(task(graph), H200) == pytest.approx(least / 4.8e6)
    (found,) = cost_of(task(graph), root(graph), H200)
    assert found.flops == 2 * 64 * 32 * 128 * 28 * 28


def test_rows_that_stay_in_l2_are_read_again_more_cheaply():
    net = Net()
    x = net.input("x", 64, 65536)
    short = net.graph(net.softmax(x))
    long = softmax(64, 16 * 65536)
    gain = [
        cost(graph, looping("multi_pass")).time_us / cost(graph, looping("one_pass")).time_us
        for graph in (short, long)
    ]
    assert 1.0 < gain[0] < gain[1] <= 4 / 3 + 0.01

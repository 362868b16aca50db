"""Which cases a proof has."""

import math

import msgspec
import pytest

from mtmc_engine.core.graph import Graph, GraphInput, Node, TensorSpec
from mtmc_engine.core.task import InputSet, Policy, Task
from mtmc_engine.proof.space import evaluate
from mtmc_engine.proof.variants import plan_cases
from mtmc_engine.proof.wire import Compiled, Launch
from mtmc_engine.system.devices import card


def task_of(*specs, present=False):
    inputs = tuple(GraphInput(f"x{i}", "input", f"x{i}", spec) for i, spec in enumerate(specs))
    node = Node("out", "aten.relu.default", ("%x0",), {}, (specs[0],))
    device = msgspec.structs.replace(card("sm_90"), present=present)
    return Task(
        file="/operator.py",
        digest="",
        name="operator",
        module="operator_file",
        form="module",
        entry="Model",
        policy=Policy(),
        device=device,
        inputs=(InputSet("declared", specs),),
        graph=Graph(inputs, (node,), "%out"),
        vary=((0, 0),),
    )


def launched(grid, **constants):
    return Compiled(None, launches=(Launch("kernel", "", grid, constants),))


LARGE = TensorSpec((4096, 8192), "float32", ("s0", "s1"))
SMALL = TensorSpec((64, 128), "float32", ("s0", "s1"))


def shapes(plan):
    return {case.shapes[0] for case in plan.cases}


def test_sizes_around_the_blocks_of_the_kernel():
    plan = plan_cases(task_of(LARGE), launched((4096,), BLOCK=256), 0)
    columns = {shape[1] for shape in shapes(plan)}
    assert {1, 255, 256, 257} <= columns
    assert all(math.prod(shape) <= 1 << 19 for shape in shapes(plan))
    assert "not above" in plan.scope


def test_declared_shapes_where_the_interpreter_can():
    plan = plan_cases(task_of(SMALL), launched((64,), BLOCK=128), 0)
    assert plan.cases[0].shapes == ((64, 128),)
    assert plan.cases[0].own


def with_sets(task, *shapes):
    (first,) = task.inputs
    more = tuple(
        InputSet("x".join(map(str, shape)), (TensorSpec(shape, "float32"),)) for shape in shapes
    )
    return msgspec.structs.replace(task, inputs=(first, *more))


def test_every_declared_set_is_among_the_cases_without_a_gpu():
    """Small ones as they are, large ones shrunk with their dimensions of one kept."""
    task = with_sets(task_of(LARGE), (17, 129), (1, 65536), (4, 4, 4), (512, 512, 4))
    plan = plan_cases(task, launched((4096,), BLOCK=256), 0)
    by_shape = {case.shapes[0]: case for case in plan.cases}
    assert by_shape[17, 129].own
    assert by_shape[1, 67].repeat
    assert by_shape[4, 4, 4].own
    assert plan.left_out == ("512x512x4",)


def test_declared_shapes_on_a_gpu_come_first():
    plan = plan_cases(task_of(LARGE, present=True), launched((4096,), BLOCK=256), 0)
    assert plan.cases[0].shapes == ((4096, 8192),)
    assert (1, 1) in shapes(plan)


def test_layouts_distributions_and_empty_tensors():
    plan = plan_cases(task_of(LARGE), launched((1,)), 0)
    assert {case.layout for case in plan.cases} >= {"contiguous", "transposed", "sliced"}
    assert {case.distribution for case in plan.cases} >= {"own", "times 3", "large offset"}
    empty = [case for case in plan.cases if 0 in case.shapes[0]]
    assert empty
    assert all(case.advisory for case in empty)


def test_dimensions_that_belong_together_stay_together():
    left = TensorSpec((512, 256), "float32", ("s0", "s1"))
    right = TensorSpec((256, 128), "float32", ("s1", "s2"))
    for case in plan_cases(task_of(left, right), launched((8,), BLOCK=64), 0).cases:
        assert case.shapes[0][1] == case.shapes[1][0]


def test_squares_stay_squares_once():
    square = TensorSpec((512, 512), "float32", ("s0", "s1"))
    sides = shapes(plan_cases(task_of(square), launched((512,), BLOCK=64), 0))
    assert (16, 16) in sides
    assert (16, 32) in shapes(plan_cases(task_of(LARGE), launched((512,), BLOCK=64), 0))


def test_fixed_dimensions_stay():
    fixed = TensorSpec((512, 256), "float32", ("s0", "256"))
    for case in plan_cases(task_of(fixed), launched((512,), BLOCK=256), 0).cases:
        assert case.shapes[0][1] == 256


def test_names_are_unique():
    plan = plan_cases(task_of(LARGE), launched((4096,), BLOCK=64), 0)
    names = [case.name for case in plan.cases]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("text", "value"), [("128", 128), ("s0", 7), ("2*s0 + 1", 15)])
def test_expressions(text, value):
    assert evaluate(text, {"s0": 7}) == value


def distributions(plan):
    return {case.distribution: case for case in plan.cases}


def test_half_types_get_values_near_the_end_of_their_range():
    half = TensorSpec((64, 128), "float16", ("s0", "s1"))
    assert "near the range's end" in distributions(plan_cases(task_of(half), launched((1,)), 0))
    assert "near the range's end" not in distributions(
        plan_cases(task_of(SMALL), launched((1,)), 0)
    )


@pytest.mark.parametrize(("policy", "advisory"), [("report", True), ("match", False)])
def test_nan_is_a_case_of_its_own(policy, advisory):
    task = msgspec.structs.replace(task_of(SMALL), policy=Policy(nan=policy))
    assert distributions(plan_cases(task, launched((1,)), 0))["with NaN"].advisory == advisory


def test_nan_that_is_to_be_ignored_is_not_put_in():
    task = msgspec.structs.replace(task_of(SMALL), policy=Policy(nan="ignore"))
    assert "with NaN" not in distributions(plan_cases(task, launched((1,)), 0))


def test_integers_have_one_distribution():
    whole = TensorSpec((64, 128), "int64", ("s0", "s1"))
    assert set(distributions(plan_cases(task_of(whole), launched((1,)), 0))) == {"own"}


def test_fixed_shapes_on_a_gpu_see_every_distribution():
    fixed = TensorSpec((64, 128), "float32", ("64", "128"))
    found = distributions(plan_cases(task_of(fixed, present=True), launched((1,)), 0))
    assert {"normal", "large offset", "zero rows", "with NaN"} <= set(found)
    assert {case.shapes for case in found.values()} == {((64, 128),)}

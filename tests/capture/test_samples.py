"""Every sample opens quickly, is captured whole, and has a twin."""

import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="session")

SAMPLES = Path(__file__).parents[2] / "samples"

OPERATORS = {
    "add_rms_norm": "add pow mean add rsqrt mul mul",
    "cross_entropy": "cross_entropy_loss",
    "gelu": "mul mul mul add mul mul tanh add mul",
    "l2_normalise": "mul sum sqrt clamp div",
    "layer_norm": "layer_norm",
    "linear_relu_sum": "linear relu sum",
    "matmul_bias_gelu": "matmul add gelu",
    "mlp": "linear gelu linear add",
    "residual_norm": "add layer_norm",
    "rms_norm": "pow mean add rsqrt mul mul",
    "softmax": "softmax",
    "swiglu": "linear silu linear mul",
}


async def test_every_sample_is_listed_here():
    names = {path.stem for path in SAMPLES.glob("*.py") if path.stem != "__init__"}
    assert names == OPERATORS.keys()


@pytest.mark.parametrize("name", OPERATORS)
async def test_a_sample_opens(name, opened):
    started = time.monotonic()
    task = await opened(SAMPLES / f"{name}.py")
    assert time.monotonic() - started < 8
    assert [node.op.split(".")[1] for node in task.graph.nodes] == OPERATORS[name].split()
    assert all(node.line > 0 for node in task.graph.nodes)
    assert task.graph.captured
    assert not task.random
    assert (0, 0) in task.vary
    assert task.twin is not None
    assert [n.name for n in task.twin.graph.nodes] == [n.name for n in task.graph.nodes]
    held = sum(i.spec.numel for i in task.twin.graph.inputs)
    assert held < 400_000


async def test_softmax_in_detail(opened):
    task = await opened(SAMPLES / "softmax.py")
    (x,) = task.graph.inputs
    assert (x.name, x.kind, x.target) == ("x", "input", "x")
    assert x.spec.shape == (4096, 8192)
    assert x.spec.dims == ("s0", "s1")
    (node,) = task.graph.nodes
    assert node.op == "aten.softmax.int"
    assert (node.args, node.kwargs) == (("%x", -1), {})
    assert task.graph.outputs == f"%{node.name}"
    assert task.vary == ((0, 0), (0, 1))
    assert task.inputs[0].label == "4096x8192"
    assert (task.module, task.form, task.entry) == ("softmax", "module", "Model")
    assert task.arguments == ("x",)


async def test_weights_hold_dimensions_fast(opened):
    task = await opened(SAMPLES / "linear_relu_sum.py")
    specs = {i.target: i.spec for i in task.graph.inputs}
    assert specs["linear.weight"].dims == ("4096", "2048")
    assert specs["x"].dims == ("s0", "2048")
    assert task.graph.nodes[0].module == "linear"
    assert task.graph.nodes[-1].out[0].dims == ("s0",)


async def test_the_function_form_keeps_its_defaults(opened):
    task = await opened(SAMPLES / "l2_normalise.py")
    assert (task.form, task.entry) == ("function", "l2_normalise")
    assert task.arguments == ("x", "eps")
    assert task.fixed == {"eps": 1e-12}


async def test_class_indices_stay_inside_the_twins_vocabulary(opened):
    task = await opened(SAMPLES / "cross_entropy.py")
    logits, targets = task.twin.tensors
    assert logits.shape[0] == targets.shape[0] < 2048
    assert logits.shape[1] == task.twin.constants["VOCABULARY"] < 50304

"""What the graph holds: opaque modules, mutations, constants, nested calls, declared shapes."""

import pytest

from mtmc_engine.core.errors import UsageError

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
"""


async def test_recurrent_layers_stay_leaves(written, opened):
    task = await opened(
        written(
            HEAD
            + """
class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 10)

    def forward(self, x):
        out, (h, c) = self.lstm(x)
        return self.head(out[:, -1]), c

def get_inputs(): return [torch.randn(64, 512, 256)]
def get_init_inputs(): return [256, 512]
"""
        )
    )
    lstm = task.graph.node("lstm")
    assert (lstm.op, lstm.module, lstm.args) == ("opaque", "lstm", ("%x",))
    assert [spec.dims for spec in lstm.out] == [
        ("s0", "s1", "512"),
        ("2", "s0", "512"),
        ("2", "s0", "512"),
    ]
    assert task.vary == ((0, 0), (0, 1))
    picks = [n.args for n in task.graph.nodes if n.op == "getitem"]
    assert ("%lstm", 0) in picks
    assert ("%lstm", 1) in picks
    assert [n.op for n in task.graph.nodes][-2:] == ["aten.select.int", "aten.linear.default"]
    assert any("lstm is called as it is" in note for note in task.notes)


async def test_a_data_dependent_module_is_opaque_and_its_surroundings_are_not(written, opened):
    task = await opened(
        written(
            HEAD
            + """
class Clip(nn.Module):
    def forward(self, x):
        if x.abs().max() > 3:
            return x / 3
        return x

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.clip = Clip()
        self.linear = nn.Linear(32, 48)

    def forward(self, x):
        return torch.relu(self.linear(self.clip(x)))

def get_inputs(): return [torch.randn(128, 32)]
"""
        )
    )
    assert task.graph.captured
    assert [n.op for n in task.graph.nodes] == [
        "opaque",
        "aten.linear.default",
        "aten.relu.default",
    ]
    assert task.graph.nodes[0].module == "clip"
    assert task.vary == ((0, 0),)


async def test_a_module_whose_sizes_depend_on_values_is_opaque(written, opened):
    task = await opened(
        written(
            HEAD
            + """
class Centre(nn.Module):
    def forward(self, x):
        return x - x[x > 0].mean()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.centre = Centre()

    def forward(self, x):
        return self.centre(x) * 2

def get_inputs(): return [torch.randn(64, 100)]
"""
        )
    )
    assert [(n.op, n.module) for n in task.graph.nodes] == [
        ("opaque", "centre"),
        ("aten.mul.Tensor", ""),
    ]


async def test_a_data_dependent_function_is_one_opaque_node(written, opened):
    task = await opened(
        written(
            HEAD
            + """
def sign_of_sum(x):
    return x if x.sum() > 0 else -x

def inputs(): return [torch.randn(128, 32)]
"""
        )
    )
    assert not task.graph.captured
    assert "depends on values" in task.graph.why
    (node,) = task.graph.nodes
    assert (node.op, node.args, node.out[0].shape) == ("opaque", ("%x",), (128, 32))


async def test_an_argument_that_is_written_to_is_not_captured(written, opened):
    task = await opened(
        written(
            HEAD + "def double_(x):\n    return x.mul_(2)\ndef inputs(): return [torch.ones(9)]\n"
        )
    )
    assert not task.graph.captured
    assert "writes into its argument" in task.graph.why


async def test_buffers_that_change_are_mutations_and_dicts_are_results(written, opened):
    task = await opened(
        written(
            HEAD
            + """
class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return {"y": F.relu_(self.norm(x)), "extra": (x.sum(0), None), "n": 1}

def get_inputs(): return [torch.randn(16, 24, 8, 8)]
def get_init_inputs(): return [24]
"""
        )
    )
    graph = task.graph
    names = {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert graph.mutations.keys() == names
    assert all(graph.value(value) for value in graph.mutations.values())
    assert graph.outputs == {"y": "%relu", "extra": ["%sum", None], "n": 1}
    assert "aten.relu.default" in [n.op for n in graph.nodes]


async def test_active_dropout_is_random(written, opened):
    path = written(
        HEAD
        + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        return self.dropout(x) + 1

def get_inputs(): return [torch.randn(64, 64)]
"""
    )
    task = await opened(path)
    assert task.random
    assert any("native_dropout" in note for note in task.notes)
    evaluated = await opened(path, overrides={"mode": "eval"})
    assert not evaluated.random
    assert [n.op for n in evaluated.graph.nodes] == ["aten.add.Tensor"]


async def test_what_does_not_repeat_itself_without_the_graph_showing_it(written, opened):
    task = await opened(
        written(
            HEAD
            + """
def noisy(x, unused):
    if x.sum() > 1e9:
        return x
    return x + torch.randn_like(x)

def inputs(): return [torch.randn(4, 4), torch.randn(4)]
"""
        )
    )
    assert task.random


async def test_an_input_that_does_not_matter_is_said(written, opened):
    task = await opened(
        written(
            HEAD
            + """
def first(x, y):
    return x * 2 + 0 * y

def inputs(): return [torch.randn(4, 4), torch.randn(4)]
"""
        )
    )
    assert task.notes == ("The output does not depend on y.",)


async def test_constants_attributes_and_infinities(written, opened):
    task = await opened(
        written(
            HEAD
            + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.arange(8.0)

    def forward(self, x):
        x = x * self.scale * torch.tensor([1.0, 2.0] * 4)
        return x.masked_fill(x > 3, float("-inf")) + torch.tensor(float("-inf"))

def get_inputs(): return [torch.randn(4, 8)]
"""
        )
    )
    inputs = {i.target: i for i in task.graph.inputs}
    assert inputs["scale"].kind == "buffer"
    (constant,) = [i for i in task.graph.inputs if i.kind == "constant"]
    assert constant.values == (1.0, 2.0) * 4
    assert task.graph.node("masked_fill").args[2] == "-inf"
    (full,) = [n for n in task.graph.nodes if n.op == "aten.full.default"]
    assert full.args == ([], "-inf")


async def test_nested_arguments_are_named_as_python_would(written, opened):
    task = await opened(
        written(
            HEAD
            + """
def joined(parts, state, alpha: float = 2.0):
    return torch.cat(parts, -1) * alpha, state["h"] + 1

def inputs(): return [[torch.randn(64, 8), torch.randn(64, 24)], {"h": torch.randn(3)}]
"""
        )
    )
    assert [i.target for i in task.graph.inputs] == ["parts[0]", "parts[1]", "state['h']"]
    assert task.graph.node("cat").out[0].dims == ("s0", "s1 + s2")
    assert task.arguments == ("parts", "state", "alpha")
    assert task.fixed == {"alpha": 2.0}


async def test_sizes_in_the_program_are_sym_nodes(written, opened):
    task = await opened(
        written(
            HEAD
            + """
def split_heads(x):
    return x.reshape(x.shape[0] * 4, -1).sum(-1)

def inputs(): return [torch.randn(6, 32)]
"""
        )
    )
    symbols = [(n.name, n.args) for n in task.graph.nodes if n.op == "sym"]
    assert symbols == [("size", ("size", "%x", 0)), ("mul", ("mul", "%size", 4))]
    reshape = next(n for n in task.graph.nodes if n.op.startswith("aten.view"))
    assert reshape.args[1][0] == "%mul"
    assert reshape.out[0].dims[0] == "4*s0"


async def test_declared_shapes_dtypes_and_dimensions(written, opened):
    task = await opened(
        written(
            HEAD
            + """
TASK = {"shapes": [(64, 128), (8, 128)], "vary": ["x.0"], "dtypes": torch.bfloat16}

class Model(nn.Module):
    def forward(self, x):
        return x.softmax(-1)

def get_inputs(): return [torch.randn(16, 16)]
"""
        )
    )
    assert [s.label for s in task.inputs] == ["64x128", "8x128"]
    assert [s.tensors[0].dims for s in task.inputs] == [("s0", "128"), ("s0", "128")]
    assert task.graph.inputs[0].spec.dtype == "bfloat16"
    assert task.vary == ((0, 0),)


async def test_a_declared_shape_that_the_reference_refuses(written, opened):
    path = written(
        HEAD
        + """
TASK = {"shapes": [(64, 128), (8, 127)]}

def halves(x):
    return x.view(x.shape[0], 2, 64).sum(1)

def inputs(): return [torch.randn(16, 128)]
"""
    )
    with pytest.raises(UsageError, match="the reference at 8x127 failed"):
        await opened(path)


async def test_a_model_too_large_for_memory_is_exported_without_any(written, opened):
    task = await opened(
        written(
            HEAD
            + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(200_000, 500_000)

    def forward(self, x):
        return self.linear(x)

def get_inputs(): return [torch.randn(100_000, 200_000)]
"""
        )
    )
    assert task.graph.node("linear").out[0].shape == (100_000, 500_000)
    assert any("was not run" in note for note in task.notes)

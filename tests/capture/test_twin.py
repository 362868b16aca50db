"""The shrunk twin: relations between integers, isomorphism, and the cases that need care."""

import msgspec
import pytest

from mtmc_engine.capture.shrink import Scale, head_sizes, smaller
from mtmc_engine.core.graph import Graph, GraphInput, Node, TensorSpec

SCALE = Scale(kept=16, least=32)


def test_relations_between_integers_are_kept():
    small = smaller([3, 16, 768, 1024, 4096, 50257, 1024], SCALE)
    assert small[3] == 3
    assert small[16] == 16
    assert small[1024] % 16 == 0
    assert small[4096] % small[1024] == 0
    assert small[1024] & (small[1024] - 1) == 0
    assert small[50257] % 2 == 1
    assert small[768] < small[1024] < small[4096] < small[50257]
    assert max(small.values()) < 400


def test_products_are_kept_where_asked_for():
    small = smaller([12, 64, 768], Scale(8, 8, products=True))
    assert small[768] == small[12] * small[64]


def test_an_attention_heads_size_is_kept():
    assert head_sizes([1024, 768, 12], dims=[8, 12, 64]) == {12: 2, 768: 128}
    assert head_sizes([1024, 768], dims=[8, 64]) == {}


def _graph(rows, columns, size, scale=1.0):
    spec = TensorSpec((rows, columns), "float32", ("s0", str(columns)))
    halves = TensorSpec((rows, 2, columns // 2), "float32", ("s0", "2", str(columns // 2)))
    view = Node("view", "aten.view.default", ("%x", [-1, 2, size]), {}, (halves,))
    mul = Node("mul", "aten.mul.Tensor", ("%view", scale), {}, (halves,))
    return Graph((GraphInput("x", "input", "x", spec),), (view, mul), "%mul")


def test_isomorphism():
    from mtmc_engine.capture.isomorphic import difference

    original, twin = _graph(4096, 1024, 512), _graph(64, 32, 16)
    assert difference(original, twin) == ""
    assert difference(original, _graph(64, 32, 16, scale=2.0)) == "the operator mul"
    assert difference(original, msgspec.structs.replace(twin, outputs="%view")) == "the results"
    shorter = msgspec.structs.replace(twin, nodes=twin.nodes[:1])
    assert difference(original, shorter) == "the number of operators"
    fixed = TensorSpec((64, 32), "float32", ("64", "32"))
    other = msgspec.structs.replace(twin, inputs=(GraphInput("x", "input", "x", fixed),))
    assert difference(original, other) == "the input x"


HEAD = """
import math
import torch
import torch.nn.functional as F
from torch import nn
"""

SOFTMAX = (
    HEAD
    + """
def softmax(x):
    return x.softmax(-1)

def inputs():
"""
)

ATTENTION = (
    HEAD
    + """
TOKENS, WIDTH, HEADS = 512, 768, 12

class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.heads = heads
        self.register_buffer("mask", torch.tril(torch.ones(TOKENS, TOKENS)))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(self.mask[:t, :t] == 0, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)

def get_inputs(): return [torch.randn(8, TOKENS, WIDTH)]
def get_init_inputs(): return [WIDTH, HEADS]
"""
)


@pytest.mark.asyncio(loop_scope="session")
async def test_attention_has_a_twin_with_heads_of_the_same_size(written, opened):
    task = await opened(written(ATTENTION))
    twin = task.twin
    assert twin.constants["WIDTH"] // twin.constants["HEADS"] == 64
    assert twin.tensors[0].shape[1] == twin.constants["TOKENS"] < 512
    assert [n.args for n in twin.graph.nodes if n.op == "aten.div.Tensor"] == [("%matmul", 8.0)]


@pytest.mark.asyncio(loop_scope="session")
async def test_literals_of_the_file_are_made_smaller_by_position(written, opened):
    task = await opened(
        written(
            HEAD
            + """
class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.expand = nn.Linear(width, hidden)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x):
        return self.norm(self.expand(x))

def get_inputs(): return [torch.randn(512, 1024)]
def get_init_inputs(): return [1024, 4096]
"""
        )
    )
    twin = task.twin
    assert twin.constants == {}
    sizes = dict(twin.init_args)
    assert sizes.keys() == {0, 1}
    weight = next(i.spec for i in twin.graph.inputs if i.target == "expand.weight")
    assert weight.shape == (sizes[1], sizes[0])


@pytest.mark.asyncio(loop_scope="session")
async def test_small_inputs_that_vary_need_no_constants(written, opened):
    task = await opened(
        written(
            HEAD + "def f(x): return x.softmax(-1)\ndef inputs(): return [torch.rand(999, 640)]\n"
        )
    )
    assert (task.twin.constants, task.twin.init_args) == ({}, ())
    assert task.twin.tensors[0].shape < (999, 640)


@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_small_already_has_no_twin(written, opened):
    task = await opened(
        written(
            HEAD + "def f(x): return x.softmax(-1)\ndef inputs(): return [torch.rand(64, 64)]\n"
        )
    )
    assert task.twin is None


@pytest.mark.asyncio(loop_scope="session")
async def test_a_twin_whose_inputs_would_leave_its_vocabulary_is_refused(written, opened):
    task = await opened(
        written(
            HEAD
            + """
class Model(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)

    def forward(self, ids):
        return self.embedding(ids)

def get_inputs(): return [torch.randint(0, 32000, (8, 512))]
def get_init_inputs(): return [32000, 512]
"""
        )
    )
    assert task.twin is None

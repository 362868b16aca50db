"""Rendered programs take and give what the reference does: structure, strides, names, literals."""

import msgspec
import pytest

from mtmc_engine.capture.client import task_of
from mtmc_engine.core.program import Group, Library, Schedule
from mtmc_engine.schedule.legal import legal_actions
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.templates import lowering
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Ending, Limits

pytestmark = pytest.mark.asyncio(loop_scope="session")

_HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def module(body, inputs="[torch.randn(6, 45)]", names="x", setup="pass", before=""):
    return f"""{_HEAD}{before}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {setup}

    def forward(self, {names}):
        {body}

def get_inputs():
    return {inputs}
"""


def function(head, body, inputs):
    return f"{_HEAD}\ndef {head}:\n    {body}\n\ndef inputs():\n    return {inputs}\n"


_CHANNELS_LAST = "[torch.randn(2, 6, 4, 5).contiguous(memory_format=torch.channels_last)]"
_NAMED = """
from typing import NamedTuple
class Out(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor
"""
_RECORD = """
from dataclasses import dataclass
@dataclass
class Out:
    a: torch.Tensor
    b: torch.Tensor
"""
_PAIR = "return Out(x.exp(), x.sum(-1))"
FILES = {
    "return_type": module("return x.max(-1)"),
    "sorted": module("return torch.sort(x, -1)"),
    "named_tuple": module(_PAIR, before=_NAMED),
    "dataclass": module(_PAIR, before=_RECORD),
    "other_keys": module("return {'a': x.exp(), 3: x.sum(-1)}"),
    "ordered": module("from collections import OrderedDict; return OrderedDict(a=x.exp())"),
    "nested": module("return [x.max(-1), {'k': (x.exp(),)}]"),
    "channels_last_result": module(
        "return (x * 2).contiguous(memory_format=torch.channels_last)", "[torch.randn(2, 6, 4, 5)]"
    ),
    "channels_last_input": module("return F.relu(x) * 2", _CHANNELS_LAST),
    "channels_last_norm": module(
        "return self.g(x)", _CHANNELS_LAST, setup="self.g = nn.BatchNorm2d(6).eval()"
    ),
    "channels_last_groups": module(
        "return self.g(x)", _CHANNELS_LAST, setup="self.g = nn.GroupNorm(3, 6)"
    ),
    "transposed_result": module("return F.relu(x).transpose(1, 2)", "[torch.randn(3, 5, 7)]"),
    "attention": module(
        "q = self.q(x).view(2, 5, 2, 8).transpose(1, 2); "
        "return F.scaled_dot_product_attention(q, q, q) * 2",
        "[torch.randn(2, 5, 16)]",
        setup="self.q = nn.Linear(16, 16)",
    ),
    "einsum": module(
        "return torch.einsum('bij,bjk->bki', x, y) * 2 + 1",
        "[torch.randn(2, 5, 6), torch.randn(2, 6, 7)]",
        "x, y",
    ),
    "like_transposed": module("return torch.zeros_like(x.t()) + x.t()"),
    "argument_torch": """import torch as t
from torch import nn

class Model(nn.Module):
    def forward(self, torch, tl):
        return t.relu(torch).softmax(-1) * tl

def get_inputs():
    return [t.randn(6, 45), t.randn(45)]
""",
    "argument_pointers": module(
        "return F.relu(x).softmax(-1) * x_ptr + out_ptr",
        "[torch.randn(6, 45), torch.randn(45), torch.randn(6, 45)]",
        "x, x_ptr, out_ptr",
    ),
    "argument_builtins": module(
        "return F.relu(max).softmax(-1) * sum + range",
        "[torch.randn(6, 45), torch.randn(45), torch.randn(6, 45)]",
        "max, sum, range",
    ),
    "entry_is_a_helper": function(
        "tanh(x)", "return F.relu(x).softmax(-1) * x.tanh()", "[torch.randn(6, 45)]"
    ),
    "not_numbers": module(
        "return torch.where(m, x, float('nan')) * 2, x.masked_fill(m, float('-inf')).softmax(-1), "
        "x[:, :3] * torch.tensor([float('nan'), float('inf'), 1.0])",
        "[torch.randn(6, 45), torch.randn(6, 45) > 0]",
        "x, m",
    ),
    "complex_numbers": module("return x * (1 + 2j), x * 2j"),
    "large_integers": module(
        "return x + 2**62, x * 3000000000, torch.where(x > 1, x, -(2**63))",
        "[torch.randint(0, 9, (6, 45))]",
    ),
    "rest": module("return xs[0] * 2 + xs[1]", "[torch.randn(6, 45), torch.randn(45)]", "*xs"),
    "by_name": function(
        "scaled(x, y, *, k, dtype=torch.float32, **more)",
        "return F.relu(x).to(dtype) * y + k * more['z']",
        "{'k': 2.0, 'y': torch.randn(45), 'z': torch.randn(45), 'x': torch.randn(6, 45)}",
    ),
    "none": module(
        "return F.relu(x) * w if m is None else x",
        "[torch.randn(6, 45), None, torch.randn(45)]",
        "x, m, w",
    ),
    "lists": module(
        "return F.relu(xs[0]) * xs[1] + d['a'] * xs[2]",
        "[[torch.randn(6, 45), torch.randn(45), 3], {'a': torch.randn(45)}]",
        "xs, d",
    ),
    "sizes": module("return F.relu(x).reshape(shape)", "[torch.randn(6, 45)]", "x, shape=(45, 6)"),
    "empty": module("return F.relu(x) * 2, x.softmax(-1)", "[torch.randn(0, 45)]"),
    "empty_sum": module("return x.sum(-1) + 1", "[torch.randn(6, 0)]"),
    "own_hooks": module(
        "return F.relu(x) * 2",
        setup="self.register_forward_hook(lambda m, i, o: o * 3); "
        "self.register_forward_pre_hook(lambda m, i: (i[0] + 1,))",
    ),
    "inner_hooks": module(
        "return self.l(x).relu()",
        setup="self.l = nn.Linear(45, 20); self.l.register_forward_hook(lambda m, i, o: o * 2)",
    ),
    "weight_norm": module(
        "return self.l(x).relu()", setup="self.l = nn.utils.weight_norm(nn.Linear(45, 20))"
    ),
    "spectral_norm": module(
        "return self.l(x).relu()",
        setup="self.l = nn.utils.parametrizations.spectral_norm(nn.Linear(45, 20))",
    ),
    "shared_weights": module(
        "return self.b(self.a(x)).relu()",
        setup="self.a = nn.Linear(45, 45); self.b = nn.Linear(45, 45); "
        "self.b.weight = self.a.weight",
    ),
    "trained_norm": module(
        "return self.bn(x).relu()",
        "[torch.randn(2, 6, 4, 5)]",
        setup="self.bn = nn.BatchNorm2d(6)",
    ),
    "rotary": module(
        "a, b = x[..., ::2], x[..., 1::2]; "
        "return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)",
        "[torch.randn(2, 3, 5, 8), torch.randn(5, 4), torch.randn(5, 4)]",
        "x, c, s",
    ),
    "rotary_halves": module(
        "a, b = x.chunk(2, -1); return x * c + torch.cat([-b, a], -1) * s",
        "[torch.randn(2, 3, 5, 8), torch.randn(5, 8), torch.randn(5, 1)]",
        "x, c, s",
    ),
    "long_columns": module("return x.sum(0), x.mean(0)", "[torch.randn(70000, 3)]"),
}


async def opened(workshop, file):
    arguments = {
        "file": str(file),
        "reference": None,
        "overrides": {},
        "seed": 0,
        "target_card": msgspec.to_builtins(card("sm_90")),
    }
    return task_of(await workshop.device.run("mtmc_engine.capture.worker:open_task", arguments))


def lowered(task):
    groups = []
    for group in root(task.graph).groups:
        form = lowering(task.graph, group.nodes, task.device) if group.region else None
        groups.append(Group(group.region, group.nodes, form or Library()))
    return Schedule(tuple(groups))


@pytest.mark.parametrize("name", FILES)
async def test_programs_give_what_the_reference_gives(name, workshop, tmp_path):
    file = tmp_path / f"form_{name}.py"
    file.write_text(FILES[name])
    task = await opened(workshop, file)
    assert task.graph.captured
    assert legal_actions(task, root(task.graph), task.device)[-1].kind == "stop"
    sources = {
        kind: render(task, schedule)
        for kind, schedule in (("root", root(task.graph)), ("lowered", lowered(task)))
    }
    arguments = {"file": str(file), "sources": sources}
    job = "tests.schedule.form_jobs:compare"
    result = await workshop.interpret.run(job, arguments, Limits(wall_s=120))
    assert result.ending is Ending.DONE, f"{sources}\n{result.traceback}\n{result.output}"
    assert result.value == [], sources["lowered"]


@pytest.mark.parametrize(
    ("setup", "body"),
    [
        ("pass", "self.last = x.mean(); return F.relu(x) * 2"),
        ("self.count = 0", "self.count += 1; return F.relu(x) * self.count"),
    ],
)
async def test_what_a_call_sets_on_the_module_is_not_dropped(setup, body, workshop, tmp_path):
    file = tmp_path / "setting.py"
    file.write_text(module(body, setup=setup))
    task = await opened(workshop, file)
    assert not task.graph.captured
    assert "the call sets self." in task.graph.why
    assert "super().forward" in render(task, root(task.graph))


@pytest.mark.parametrize("name", ["torch", "triton", "tl"])
async def test_a_function_named_like_what_kernels_import_is_refused(name, workshop, tmp_path):
    file = tmp_path / "named.py"
    file.write_text(
        f"import torch as t\n\ndef {name}(x):\n    return t.relu(x)\n\n"
        "def inputs():\n    return [t.randn(3)]\n"
    )
    with pytest.raises(Exception, match="rename it"):
        await opened(workshop, file)

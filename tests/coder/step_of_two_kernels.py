"""A task of relu, linear and gelu on disk, its program with two kernels, and coders to ask."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "schedule"))

from msgspec.structs import replace
from operator_graphs import Net, task

from mtmc_engine.coder.llm.coder import LanguageModelCoder
from mtmc_engine.coder.llm.setting import CoderSetting
from mtmc_engine.core.program import Program
from mtmc_engine.schedule.legal import apply_action, parse_phrase
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.system.chat.openai_chat import OpenAIChat
from mtmc_engine.system.chat.patience import Policy

REFERENCE = '''"""Relu, linear, gelu."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = torch.nn.Parameter(torch.randn(64, 64))
        self.b1 = torch.nn.Parameter(torch.randn(64))

    def forward(self, x):
        hidden = torch.nn.functional.linear(torch.relu(x), self.w1, self.b1)
        return (torch.nn.functional.gelu(hidden),)
'''
IMPATIENT = Policy(tries=2, first_wait_s=0.01, most_wait_s=0.02)


def opened(folder, reference=REFERENCE):
    """The task whose file lies in `folder`."""
    path = Path(folder) / "op.py"
    path.write_text(reference)
    net = Net()
    x = net.unary("relu", net.input("x", 256, 64))
    return replace(task(net.graph(net.unary("gelu", net.linear(x, 64)))), file=str(path))


def two_kernels(operator):
    schedule = root(operator.graph)
    for phrase in ("lower r1", "lower r3"):
        schedule = apply_action(operator, schedule, parse_phrase(operator, schedule, phrase))
    return Program(render(operator, schedule), schedule)


def action_of(operator, program, phrase):
    return parse_phrase(operator, program.schedule, phrase)


def coder_at(server, **changes):
    """A coder that asks the replay server, with little patience."""
    setting = CoderSetting(patience=IMPATIENT, **changes)
    return LanguageModelCoder(OpenAIChat("replay", server.base_url), setting)


def retiled(program):
    """The program with relu's block of 2048."""
    head, relu, tail = program.source.partition("    relu_kernel[")
    line, end, rest = tail.partition("\n")
    return head + relu + line.replace("1024", "2048") + end + rest


def fenced(source):
    return f"```python\n{source}```\n"

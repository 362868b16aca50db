"""A user's edit: exactly what was saved is the program, and only what changed is by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "schedule"))

from operator_graphs import Net, task

from mtmc_engine.coder.edit import edited
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import ByHand, Library, Program, Templated
from mtmc_engine.schedule.legal import apply_action, legal_actions, parse_phrase
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render


@pytest.fixture(scope="module")
def two_kernels():
    """relu -> linear -> gelu with both pointwise regions lowered."""
    net = Net()
    x = net.unary("relu", net.input("x", 256, 64))
    operator = task(net.graph(net.unary("gelu", net.linear(x, 64))))
    schedule = root(operator.graph)
    for phrase in ("lower r1", "lower r3"):
        schedule = apply_action(operator, schedule, parse_phrase(operator, schedule, phrase))
    return operator, Program(render(operator, schedule), schedule)


def forms(program):
    return {g.region: type(g.form) for g in program.schedule.groups if g.region}


def test_a_comment_changes_the_source_and_no_group(two_kernels):
    operator, program = two_kernels
    source = program.source.replace("@triton.jit", "# tuned by me\n@triton.jit")
    found = edited(operator, program, source)
    assert found.source == source
    assert found.schedule == program.schedule


def test_only_the_edited_kernel_is_by_hand(two_kernels):
    operator, program = two_kernels
    source = program.source.replace("num_warps=4", "num_warps=2", 1)
    assert source != program.source
    found = edited(operator, program, source)
    assert found.source == source
    assert forms(found) == {"r1": ByHand, "r2": Library, "r3": Templated}
    kept = found.schedule.group("r1").form.source
    assert "num_warps=2" in kept
    assert "import" not in kept
    assert "ModelNew" not in kept


def test_the_program_after_an_edit_renders_to_the_same_functions(two_kernels):
    """The edit survives a later step on another region."""
    operator, program = two_kernels
    source = program.source.replace("num_warps=4", "num_warps=2", 1)
    found = edited(operator, program, source)
    step = parse_phrase(operator, found.schedule, "library r3")
    later = render(operator, apply_action(operator, found.schedule, step))
    assert found.schedule.group("r1").form.source.strip() in later
    assert "gelu" in later


def test_a_new_import_and_helper_go_with_the_kernel_that_needs_them(two_kernels):
    operator, program = two_kernels
    source = program.source.replace(
        "import triton\n",
        "import math\n\nimport triton\n\n\ndef warps():\n    return int(math.e)\n",
        1,
    ).replace("num_warps=4", "num_warps=warps()", 1)
    found = edited(operator, program, source)
    assert forms(found) == {"r1": ByHand, "r2": Library, "r3": Templated}
    kept = found.schedule.group("r1").form.source
    assert kept.startswith("import math")
    assert kept.index("def warps") < kept.rindex("\ndef ")


def test_an_edit_of_the_call_makes_everything_by_hand(two_kernels):
    operator, program = two_kernels
    source = program.source.replace(
        "def forward(self, x):", "def forward(self, x):\n        x = x + 0"
    )
    assert source != program.source
    found = edited(operator, program, source)
    assert set(forms(found).values()) == {ByHand}
    assert render(operator, found.schedule) == source
    offered = legal_actions(operator, found.schedule, operator.device)
    assert not {a.kind for a in offered} & {"lower", "library", "fuse", "fuse_epilogue"}


def test_a_statement_that_acts_on_import_makes_everything_by_hand(two_kernels):
    operator, program = two_kernels
    source = program.source + "\ntorch.set_float32_matmul_precision('high')\n"
    assert set(forms(edited(operator, program, source)).values()) == {ByHand}


def test_hand_written_code_is_not_fused_or_lowered_away(two_kernels):
    operator, program = two_kernels
    found = edited(operator, program, program.source.replace("num_warps=4", "num_warps=2", 1))
    offered = legal_actions(operator, found.schedule, operator.device)
    on_r1 = {a.kind for a in offered if "r1" in {a.region, a.other}}
    assert not on_r1 & {"lower", "fuse", "fuse_epilogue", "one_pass"}


def test_a_syntax_error_is_said_with_its_line(two_kernels):
    operator, program = two_kernels
    with pytest.raises(UsageError, match="syntax error in line 2"):
        edited(operator, program, "import torch\ndef broken(:\n")

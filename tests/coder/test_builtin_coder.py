"""The built-in coder: deterministic, only the action's change, and plain about what it cannot."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "schedule"))

from operator_graphs import rms_norm, task

from mtmc_engine.coder.make import make_coder
from mtmc_engine.coder.seam import CannotImplement, CoderAsk, Feedback
from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import Program
from mtmc_engine.core.verdict import Class, Gate
from mtmc_engine.schedule.legal import parse_phrase
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render

TASK = task(rms_norm())
ORIGINAL = Program(render(TASK, root(TASK.graph)), root(TASK.graph))


async def implement(phrase, program=ORIGINAL, feedback=None):
    action = parse_phrase(TASK, program.schedule, phrase)
    return await make_coder("builtin").implement(TASK, program, action, CoderAsk(feedback))


async def test_the_candidate_is_a_module_with_one_more_kernel():
    candidate = await implement("lower r3")
    functions = {n.name for n in ast.parse(candidate.program.source).body if hasattr(n, "name")}
    assert "ModelNew" in functions
    assert candidate.program.source.count("@triton.jit") == 1
    assert candidate.coder == "builtin"
    assert candidate.seconds >= 0


async def test_the_same_step_gives_the_same_source():
    first, second = await implement("lower r3"), await implement("lower r3")
    assert first.program.digest == second.program.digest


async def test_going_back_to_the_library_gives_the_original_again():
    lowered = (await implement("lower r3")).program
    back = (await implement("library r3", lowered)).program
    assert back == ORIGINAL


async def test_an_illegal_step_is_refused_with_its_reason():
    with pytest.raises(CannotImplement, match="not legal"):
        await make_coder("builtin").implement(
            TASK, ORIGINAL, Action("vectorize", "vectorize r1", "r1"), CoderAsk()
        )


async def test_a_failed_gate_is_not_answered_with_the_same_source():
    feedback = Feedback("fix_math", Gate.VALUES, Class.NUMERIC, "The error is too large.", "")
    with pytest.raises(CannotImplement, match="error is too large"):
        await implement("lower r3", feedback=feedback)


@pytest.mark.parametrize("spec", ["builtins", "built-in", ""])
def test_an_unknown_coder_names_those_that_exist(spec):
    with pytest.raises(UsageError, match="builtin"):
        make_coder(spec)

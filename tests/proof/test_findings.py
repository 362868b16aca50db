"""What the judge found, in words: a warning says what the verdict does not."""

from dataclasses import dataclass

import pytest

from mtmc_engine.core.verdict import Class
from mtmc_engine.proof.gates.proof import Proof
from mtmc_engine.proof.gates.values import _weighed
from mtmc_engine.proof.variants import Plan
from mtmc_engine.proof.wire import Call, Case, Finding, Judged, Ran, Truth, Truths

SHAPES = ((19, 128),)
CASES = (
    Case("19x128", SHAPES, ("float32",), "contiguous", "own", 0, 0),
    Case("19x128, with NaN", SHAPES, ("float32",), "contiguous", "with NaN", 0, 0, advisory=True),
    Case("0x128", ((0, 128),), ("float32",), "contiguous", "own", 0, 1, advisory=True),
)


@dataclass
class Task:
    notes: tuple[str, ...] = ()


@dataclass
class Subject:
    task: Task


def weighed(*failing):
    findings = tuple(Finding(case, "NUMERIC", "row 0 is 0.0, not 0.1") for case in failing)
    proof = Proof(Subject(Task()), None, lambda progress: None, None)
    proof.plan = Plan(CASES, None, "small shapes", 2432)
    proof.truths = Truths(tuple(Truth("") for _ in CASES))
    proof.ran = Ran(tuple(Call(number) for number in range(len(CASES))))
    outcome = _weighed(proof, Judged(findings, seen=tuple(range(len(CASES)))))
    return outcome, proof.warnings


def test_nan_is_mentioned_where_it_alone_is_wrong():
    outcome, warnings = weighed(1)
    assert outcome.verdict is None
    (warning,) = warnings
    assert warning.startswith("wrong on NaN in its input")


def test_nan_is_not_mentioned_where_numbers_are_wrong_too():
    outcome, warnings = weighed(0, 1)
    assert outcome.verdict is Class.NUMERIC
    assert warnings == []


@pytest.mark.parametrize("failing", [(2,), (0, 2)])
def test_an_empty_input_is_always_mentioned(failing):
    _, warnings = weighed(*failing)
    assert [w.startswith("wrong on empty input") for w in warnings] == [True]

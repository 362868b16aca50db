"""The shortest useful evidence of a failed gate."""

from __future__ import annotations

import pytest

from mtmc_engine.coder.llm.feedback import facts_of, feedback_of
from mtmc_engine.core.verdict import Class, Gate, GateResult, Verdict

SOURCE = "import torch\n\ndef f(x):\n    y = x +\n    return y\n"


def failed(gate, verdict, evidence, log=""):
    result = GateResult(gate, False, 0.1, "it fails", evidence, log)
    return Verdict(verdict, "it fails", (GateResult(Gate.PARSE, True, 0.0), result))


def test_a_wrong_value_is_told_with_its_place_and_the_bound():
    evidence = {
        "case": "33x70",
        "shape": [[33, 70]],
        "layout": "transposed",
        "distribution": "normal",
        "call": 2,
        "output": "",
        "index": [3, 64],
        "expected": 1.5,
        "actual": 0.25,
        "error": 1.25,
        "bound": 1e-6,
        "reference_error": 2e-7,
        "wrong_elements": 198,
        "failing": ["33x70", "1x70"],
        "cases": "10/12",
        "note": "",
    }
    learnt = feedback_of(failed(Gate.VALUES, Class.NUMERIC, evidence), SOURCE, "openai:m")
    assert (learnt.repair, learnt.coder, learnt.source) == ("fix_math", "openai:m", SOURCE)
    assert learnt.facts == (
        "case 33x70: input shapes [[33, 70]], transposed, normal, call 2 on the same object",
        "at index [3, 64]: expected 1.5, actual 0.25",
        "198 elements are wrong; largest error 1.25, allowed 1e-06, the reference's own 2e-07",
        "cases that fail: 33x70, 1x70 (10/12 pass)",
    )


def test_a_compiler_message_comes_with_the_line_that_it_is_about():
    message = "\n".join(f"note {n}" for n in range(40)) + "\nValueError: arange's range"
    learnt = feedback_of(failed(Gate.COMPILE, Class.COMPILE, {"line": 4, "error": message}), SOURCE)
    assert learnt.repair == "fix_compile"
    assert learnt.facts[0] == "line 4: y = x +"
    assert learnt.facts[-1] == "ValueError: arange's range"
    assert len(learnt.facts) < 12


def test_a_launch_that_does_not_fit_is_told_with_its_configuration():
    evidence = {
        "line": 4,
        "error": "out of resource: shared memory",
        "kernel": "f_kernel",
        "configuration": "BLOCK=128, num_stages=4",
        "grid": [2, 2, 1],
        "shared_bytes": 393216,
    }
    learnt = feedback_of(failed(Gate.COMPILE, Class.RESOURCES, evidence), SOURCE)
    assert learnt.repair == "fix_memory"
    assert (
        "launch: f_kernel on grid [2, 2, 1] with BLOCK=128, num_stages=4, "
        "393216 bytes of shared memory"
    ) in learnt.facts


@pytest.mark.parametrize(
    ("gate", "verdict", "repair"),
    [
        (Gate.PARSE, Class.SYNTAX, "fix_compile"),
        (Gate.LAUNCH, Class.ILLEGAL_ACCESS, "fix_memory"),
        (Gate.LAUNCH, Class.OOM, "fix_memory"),
        (Gate.VALUES, Class.TIMEOUT, "fix_math"),
        (Gate.INTEGRITY, Class.MUTATED_INPUT, "fix_math"),
    ],
)
def test_the_gate_chooses_the_repair(gate, verdict, repair):
    assert feedback_of(failed(gate, verdict, {}), SOURCE).repair == repair


def test_without_evidence_the_end_of_the_log_helps():
    result = GateResult(Gate.LAUNCH, False, 0.1, "it fails", {}, "a\n\nb\nc\n")
    assert facts_of(result, SOURCE) == ("a", "b", "c")


def test_evidence_is_bounded_whatever_it_holds():
    evidence = {"error": "x" * 100_000, "line": 999, "overruns": ["y" * 9000] * 50}
    facts = facts_of(GateResult(Gate.LAUNCH, False, 0.1, "", evidence), SOURCE)
    assert sum(map(len, facts)) <= 1600
    assert not any(fact.startswith("line 999") for fact in facts)


def test_what_is_proven_teaches_nothing():
    slower = Verdict(Class.SLOWER, "0.9x", (GateResult(Gate.TIMING, True, 1.0),))
    assert feedback_of(slower, SOURCE) is None
    assert feedback_of(Verdict(Class.REFERENCE_ERROR, "random"), SOURCE) is None

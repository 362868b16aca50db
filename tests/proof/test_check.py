"""The document of `check`, and its exit codes."""

import pytest

from mtmc_engine.core.task import Policy
from mtmc_engine.core.verdict import Class, Gate, GateResult, Verdict
from mtmc_engine.proof.check import accept, document

VALUES = GateResult(Gate.VALUES, True, 1.0, "values 3/3", {"cases": "3/3"})
TIMING = GateResult(Gate.TIMING, True, 0.0, "", {"noise": 0.01})


@pytest.mark.parametrize(
    ("verdict", "plain", "faster"),
    [
        (Class.FASTER, 0, 0),
        (Class.SAME, 0, 1),
        (Class.UNTIMED, 0, 1),
        (Class.NUMERIC, 1, 1),
        (Class.SUSPICIOUS, 1, 1),
        (Class.REFERENCE_ERROR, 2, 2),
    ],
)
def test_exit_codes(verdict, plain, faster):
    assert accept(Verdict(verdict, ""), Policy()) == plain
    assert accept(Verdict(verdict, ""), Policy(), require_faster=True) == faster


def test_evidence_of_a_proven_candidate_is_that_of_all_gates():
    found = document(Verdict(Class.FASTER, "", (VALUES, TIMING)), Policy())
    assert found["accepted"]
    assert found["evidence"] == {"cases": "3/3", "noise": 0.01}
    assert set(found) == {
        *("verdict", "accepted", "reason", "evidence", "gates", "warnings", "measurement"),
    }

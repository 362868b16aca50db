"""Sources held as text become real files, each judged for itself."""

import pytest

REFERENCE = """
def shifted(x):
    return x + 3

def inputs():
    return [torch.randn(500)]
"""

CANDIDATE = """
@triton.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + {constant}, mask=at < n)

def shifted(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out
"""


@pytest.mark.slow
def test_the_second_of_two_alike_is_its_own(court):
    right = court.verdict(REFERENCE, CANDIDATE.format(constant=3))
    wrong = court.verdict(REFERENCE, CANDIDATE.format(constant=1))
    again = court.verdict(REFERENCE, CANDIDATE.format(constant=3))
    assert right.verdict == "UNTIMED", right.reason
    assert wrong.verdict == "NUMERIC"
    assert again.verdict == "UNTIMED", again.reason


def test_syntax(court):
    verdict = court.verdict(REFERENCE, "\ndef shifted(x):\n    return x +\n")
    assert verdict.verdict == "SYNTAX"
    assert verdict.evidence["line"] == 9


def test_nothing_of_that_name(court):
    verdict = court.verdict(REFERENCE, "\ndef other(x):\n    return x\n")
    assert verdict.verdict == "IMPORT"
    assert "ModelNew or shifted" in verdict.reason


def test_missing_module(court):
    verdict = court.verdict(REFERENCE, "\nimport no_such_module_anywhere\n")
    assert verdict.verdict == "IMPORT"
    assert "no_such_module_anywhere" in verdict.reason

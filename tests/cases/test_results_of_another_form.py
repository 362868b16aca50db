"""Results of the wrong form, one for each class of verdict."""

import pytest

POINTWISE = """
class Model(nn.Module):
    def forward(self, x):
        return x.abs()

def get_inputs():
    return [torch.randn(12, 10)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("verdict", "body"),
    [
        ("SHAPE", "return x.abs()[:, :-1]"),
        ("DTYPE", "return x.abs().double()"),
        ("DTYPE", "return (x.abs(), x)"),
        ("DTYPE", "return 3.0"),
        ("LAYOUT", "return x.abs().to('meta')"),
        ("NONFINITE", "return x.abs() / (x != x.flatten()[0])"),
        ("RUNTIME", "return undefined(x)"),
    ],
)
def test_results_of_another_form(court, verdict, body):
    candidate = f"""
    class ModelNew(nn.Module):
        def forward(self, x):
            {body}
    """
    found = court.verdict(POINTWISE, candidate)
    assert found.verdict == verdict, found.reason


def test_a_view_of_the_input(court):
    reference = POINTWISE.replace("x.abs()", "x + 0")
    candidate = """
    class ModelNew(nn.Module):
        def forward(self, x):
            return x
    """
    assert court.verdict(reference, candidate).verdict == "ALIASED"


RECORD = """
from dataclasses import dataclass
from typing import NamedTuple

@dataclass
class Batch:
    x: torch.Tensor
    scale: float = 1.0

class Named(NamedTuple):
    x: torch.Tensor
    scale: float

class Model(nn.Module):
    def forward(self, one, other):
        return one.x * one.scale + other.x * other.scale

def get_inputs():
    return [Batch(torch.randn(12, 10), 0.5), Named(torch.randn(12, 10), 3.0)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("scale", "verdict"), [("one.scale", "UNTIMED"), ("1.0", "NUMERIC")])
def test_arguments_come_as_the_records_that_they_are(court, scale, verdict):
    candidate = f"""
    class ModelNew(nn.Module):
        def forward(self, one, other):
            return torch.add(one.x * {scale}, other.x, alpha=other.scale)
    """
    found = court.verdict(RECORD, candidate)
    assert found.verdict == verdict, found.reason


def test_no_boolean_is_called_unwritten(court):
    reference = POINTWISE.replace("x.abs()", "x > 0").replace(
        "torch.randn(12, 10)", "torch.ones(12, 10)"
    )
    candidate = """
    class ModelNew(nn.Module):
        def forward(self, x):
            return x > 1
    """
    found = court.verdict(reference, candidate)
    assert found.verdict == "NUMERIC"
    assert "never written" not in found.reason

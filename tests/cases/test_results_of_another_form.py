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

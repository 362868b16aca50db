"""Results that are zero but for the square of a rounding error are no fault."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x.std(-1), x.var(-1, unbiased=False)

def get_inputs():
    return [torch.randn(24, 40)]

def get_init_inputs():
    return []
"""

CANDIDATE = """
class ModelNew(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        {sums}
        spread = squares / (n - 1) if n > 1 else squares * float("nan")
        return spread.sqrt(), squares / n
"""
CENTRED = "mean = x.sum(-1, keepdim=True) / max(n, 1)\n        squares = ((x - mean) ** 2).sum(-1)"
NAIVE = "squares = (x * x).sum(-1) - x.sum(-1) ** 2 / max(n, 1)"


@pytest.mark.parametrize(("sums", "right"), [(CENTRED, True), (NAIVE, False)])
def test_verdict(court, sums, right):
    found = court.verdict(REFERENCE, CANDIDATE.format(sums=sums))
    assert (found.verdict == "UNTIMED") == right, found.reason
    assert right or found.verdict in ("NUMERIC", "NONFINITE")

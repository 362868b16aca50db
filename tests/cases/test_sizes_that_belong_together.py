"""Sizes that an export leaves free though only one relation of them makes sense."""

import pytest

ATTENTION = """
class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v{causal})

def get_inputs():
    return [torch.randn(2, 4, 16, 8) for _ in range(3)]

def get_init_inputs():
    return []
"""

BY_HAND = """
class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.transpose(-1, -2) * {scale}
        {mask}
        return torch.softmax(scores, -1) @ v
"""
SCALE = "q.shape[-1] ** -0.5"
CAUSAL = "scores = scores.masked_fill(torch.ones_like(scores).triu({first}) > 0, float('-inf'))"


@pytest.mark.parametrize(
    ("causal", "scale", "mask", "verdict"),
    [
        ("", SCALE, "pass", "UNTIMED"),
        ("", "1.0", "pass", "NUMERIC"),
        (", is_causal=True", SCALE, CAUSAL.format(first=1), "UNTIMED"),
        (", is_causal=True", SCALE, CAUSAL.format(first=2), "NUMERIC"),
        (", is_causal=True", SCALE, "pass", "NUMERIC"),
    ],
    ids=["plain", "no scale", "causal", "causal but for one", "not causal"],
)
def test_attention(court, causal, scale, mask, verdict):
    reference = ATTENTION.format(causal=causal)
    found = court.verdict(reference, BY_HAND.format(scale=scale, mask=mask))
    assert found.verdict == verdict, found.reason


ROTARY = """
class Model(nn.Module):
    def forward(self, x, cos, sin):
        half = x.shape[-1] // 2
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

def get_inputs():
    return [torch.randn(2, 16, 32), torch.rand(16, 16), torch.rand(16, 16)]

def get_init_inputs():
    return []
"""

IN_PLACE_OF_CAT = """
class ModelNew(nn.Module):
    def forward(self, x, cos, sin):
        half = x.shape[-1] // 2
        a, b = x[..., :half], x[..., half:]
        out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        out[..., :half] = a * cos - b * sin
        out[..., half:] = {second}
        return out
"""


@pytest.mark.parametrize(
    ("second", "verdict"),
    [("b * cos + a * sin", "UNTIMED"), ("b * cos - a * sin", "NUMERIC")],
    ids=["honest", "wrong sign"],
)
def test_tables_of_half_a_row(court, second, verdict):
    found = court.verdict(ROTARY, IN_PLACE_OF_CAT.format(second=second))
    assert found.verdict == verdict, found.reason
    if verdict == "UNTIMED":
        values = next(gate for gate in found.gates if gate.gate == "values")
        assert int(values.evidence["cases"].split("/")[0]) > 20

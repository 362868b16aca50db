"""Memory that was never written holds poison, not the reference's freed result."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x * 2 + 1

def get_inputs():
    return [torch.randn(64, 48)]

def get_init_inputs():
    return []
"""

WAYS = {
    "empty_like": "return torch.empty_like(x)",
    "empty": "return torch.empty(x.shape, device=x.device, dtype=x.dtype)",
    "new_empty": "return x.new_empty(x.shape)",
    "empty_strided": "return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype)",
    "after the library freed the result": "y = x * 2 + 1; del y; return torch.empty_like(x)",
    "half of it": "out = torch.empty_like(x); n = len(x) // 2; out[:n] = x[:n] * 2 + 1; return out",
    "all but the last": (
        "out = torch.empty_like(x).contiguous(); "
        "out.view(-1)[:-1] = (x * 2 + 1).reshape(-1)[:-1]; return out"
    ),
}
TEMPLATE = """
class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""


@pytest.mark.parametrize("way", WAYS)
def test_what_was_not_written_shows(court, way):
    found = court.verdict(REFERENCE, TEMPLATE.format(body=WAYS[way]))
    assert found.verdict == "NUMERIC", found.reason
    assert "never written" in found.reason


def test_written_memory_passes(court):
    body = "out = torch.empty_like(x); out.copy_(x * 2); out.add_(1); return out"
    found = court.verdict(REFERENCE, TEMPLATE.format(body=body))
    assert found.verdict == "UNTIMED", found.reason

"""An fp32 matrix product computed in fp16 or TF32 is not what was asked for."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(64, 96), torch.randn(96, 80)]

def get_init_inputs():
    return []
"""

HALF = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.half().float() @ b.half().float())
"""

# What TF32 keeps of each factor: ten bits of mantissa.
TF32 = """
def rounded(x):
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)

class ModelNew(nn.Module):
    def forward(self, a, b):
        return rounded(a) @ rounded(b)
"""

SPLIT = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        parts = [x @ y for x, y in zip(a.split(32, 1), b.split(32, 0))]
        return torch.stack(parts).sum(0) if parts else a @ b
"""


@pytest.mark.parametrize("candidate", [HALF, TF32], ids=["fp16", "tf32"])
def test_lower_precision_is_rejected(court, candidate):
    verdict = court.verdict(REFERENCE, candidate)
    assert verdict.verdict == "NUMERIC"
    assert verdict.evidence["error"] > 20 * verdict.evidence["reference_error"]


def test_split_accumulation_passes(court):
    verdict = court.verdict(REFERENCE, SPLIT)
    assert verdict.verdict == "UNTIMED", verdict.reason

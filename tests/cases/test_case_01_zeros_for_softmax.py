"""Values of a softmax over 393216 columns are below any absolute tolerance."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

def get_inputs():
    return [torch.rand(4, 393216)]

def get_init_inputs():
    return []
"""

KERNEL = """
@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.zeros([BLOCK], tl.float32), mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        fill[(triton.cdiv(out.numel(), 65536),)](out, out.numel(), BLOCK=65536)
        return out
"""

HONEST = """
@triton.jit
def long_softmax(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row + start + cols, mask=mask, other=-float("inf"))
        new = tl.maximum(top, x)
        shift = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(top - shift) + tl.exp(x - shift)
        top = new
    peak = tl.max(top, 0)
    total = tl.sum(total * tl.exp(top - peak), 0)
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row + start + cols, mask=mask, other=0.0)
        tl.store(out_ptr + row + start + cols, tl.exp(x - peak) / total, mask=mask)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows = x.numel() // max(1, x.shape[-1])
        if rows:
            long_softmax[(rows,)](x, out, x.shape[-1], BLOCK=8192)
        return out
"""


@pytest.mark.slow
def test_zeros_are_rejected_at_the_declared_shape(court):
    verdict = court.verdict(REFERENCE, KERNEL)
    assert verdict.verdict == "NUMERIC"
    assert "393216" in verdict.evidence["case"]
    assert verdict.evidence["bound"] < 1e-9


@pytest.mark.slow
def test_online_softmax_in_another_order_passes(court):
    verdict = court.verdict(REFERENCE, HONEST)
    assert verdict.verdict == "UNTIMED", verdict.reason

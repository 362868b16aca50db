"""Tiles that need more shared memory than the card has: the configuration and limit are named."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(1024, 1024), torch.randn(1024, 1024)]

def get_init_inputs():
    return []
"""

KERNEL = """
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inside = k + depth
        a_mask = (rows[:, None] < M) & (inside[None, :] < K)
        b_mask = (inside[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inside[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inside[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="tf32")
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=mask)

class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty(m, n, device=a.device, dtype=a.dtype)
        grid = (triton.cdiv(m, 256), triton.cdiv(n, 256))
        matmul[grid](a, b, out, m, n, k, BM=256, BN=256, BK=64, num_warps=8, num_stages=4)
        return out
"""


@pytest.mark.slow
def test_out_of_resources(court):
    verdict = court.verdict(REFERENCE, KERNEL)
    assert verdict.verdict == "RESOURCES"
    assert "num_stages=4" in verdict.reason
    assert "BM=256" in verdict.reason
    assert "232448" in verdict.reason or "231424" in verdict.reason

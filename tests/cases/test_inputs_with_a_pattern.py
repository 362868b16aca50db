"""A kernel for triangular matrices may rely on its triangles; on other inputs it may not."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, a, b):
        return torch.triu(a @ b)

def get_inputs():
    return [{a}, {b}]

def get_init_inputs():
    return []
"""
TRIANGLES = REFERENCE.format(
    a="torch.triu(torch.randn(24, 24))", b="torch.triu(torch.randn(24, 24))"
)
FULL = REFERENCE.format(a="torch.randn(24, 24)", b="torch.randn(24, 24)")

ONLY_BETWEEN = """
@triton.jit
def triangles(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    k = tl.arange(0, BLOCK)
    between = (k >= i) & (k <= j) & (k < n)
    a = tl.load(a_ptr + i * n + k, mask=between, other=0.0)
    b = tl.load(b_ptr + k * n + j, mask=between, other=0.0)
    tl.store(out_ptr + i * n + j, tl.sum(a * b, 0))

class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        if a.shape[0] != a.shape[1] or a.shape != b.shape:
            return torch.triu(a @ b)
        out = torch.empty_like(a)
        n = a.shape[0]
        if n:
            triangles[(n, n)](a, b, out, n, BLOCK=triton.next_power_of_2(n))
        return out
"""


@pytest.mark.slow
def test_triangles_stay_triangles(court):
    found = court.verdict(TRIANGLES, ONLY_BETWEEN)
    assert found.verdict == "UNTIMED", found.reason


@pytest.mark.slow
def test_what_nobody_promised(court):
    assert court.verdict(FULL, ONLY_BETWEEN).verdict == "NUMERIC"


def test_ascending_bounds_stay_ascending(court):
    reference = """
    class Model(nn.Module):
        def forward(self, x, bounds):
            return torch.bucketize(x, bounds)

    def get_inputs():
        return [torch.randn(20, 30), torch.linspace(-2, 2, 17)]

    def get_init_inputs():
        return []
    """
    candidate = """
    class ModelNew(nn.Module):
        def forward(self, x, bounds):
            return (x[..., None] > bounds).sum(-1)
    """
    found = court.verdict(reference, candidate)
    assert found.verdict == "UNTIMED", found.reason

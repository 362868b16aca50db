"""Offsets beyond 2^31: computed alone, without the memory they would need."""

REFERENCE = """
class Model(nn.Module):
    def forward(self, row):
        return row.to(torch.int64) * 7864320

def get_inputs():
    return [torch.arange(320, dtype=torch.int32)]

def get_init_inputs():
    return []
"""

OFFSETS = """
@triton.jit
def offsets(row_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(row_ptr + at, mask=at < n, other=0){wide}
    tl.store(out_ptr + at, row * stride, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, row):
        row = row.contiguous()
        out = torch.empty(row.shape, dtype=torch.int64, device=row.device)
        offsets[(triton.cdiv(row.numel(), 128),)](row, out, row.numel(), 7864320, BLOCK=128)
        return out
"""

LARGE = """
class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.ones(1 << 24)]

def get_init_inputs():
    return []
"""

DOUBLED = """
@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""


def test_products_in_32_bits_overflow(court):
    found = court.verdict(REFERENCE, OFFSETS.format(wide=""))
    assert found.verdict == "NUMERIC", found.reason
    assert found.evidence["expected"] > 2**31


def test_products_in_64_bits_pass(court):
    found = court.verdict(REFERENCE, OFFSETS.format(wide=".to(tl.int64)"))
    assert found.verdict == "UNTIMED", found.reason


def test_what_was_not_tested_is_said(court):
    found = court.verdict(LARGE, DOUBLED)
    assert found.verdict == "UNTIMED", found.reason
    assert "not above" in found.reason
    values = next(gate for gate in found.gates if gate.gate == "values")
    assert values.evidence["largest_elements"] < 1 << 24

"""Strides are part of the operator: right on contiguous inputs is not right."""

ROWS_REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x - x.mean(-1, keepdim=True)

def get_inputs():
    return [torch.randn(4, 2, 8)]

def get_init_inputs():
    return []
"""

ROWS = """
@triton.jit
def centre(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    mean = tl.sum(x, 0) / n_cols
    tl.store(out_ptr + row * n_cols + cols, x - mean, mask=cols < n_cols)

class ModelNew(nn.Module):
    def forward(self, x):
        {prepare}
        out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        rows = x.numel() // max(1, x.shape[-1])
        centre[(rows,)](x, out, x.shape[-1], BLOCK=triton.next_power_of_2(max(1, x.shape[-1])))
        return out
"""

ADD_REFERENCE = """
class Model(nn.Module):
    def forward(self, x, y):
        return x + y

def get_inputs():
    return [torch.randn(24, 24), torch.randn(24, 24)]

def get_init_inputs():
    return []
"""

FLAT_ADD = """
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + y, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x, y):
        {prepare}
        out = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
        return out
"""


def test_rows_assumed_to_follow_each_other(court):
    verdict = court.verdict(ROWS_REFERENCE, ROWS.format(prepare="pass"))
    assert verdict.verdict == "NUMERIC"
    assert verdict.evidence["layout"] != "contiguous"


def test_rows_made_contiguous(court):
    verdict = court.verdict(ROWS_REFERENCE, ROWS.format(prepare="x = x.contiguous()"))
    assert verdict.verdict == "UNTIMED", verdict.reason


def test_flat_add_of_two_layouts(court):
    verdict = court.verdict(ADD_REFERENCE, FLAT_ADD.format(prepare="pass"))
    assert verdict.verdict in ("NUMERIC", "LAYOUT")
    assert verdict.evidence["layout"] != "contiguous"


def test_flat_add_after_contiguous(court):
    prepare = "x, y = x.contiguous(), y.contiguous()"
    verdict = court.verdict(ADD_REFERENCE, FLAT_ADD.format(prepare=prepare))
    assert verdict.verdict == "UNTIMED", verdict.reason


def test_a_result_with_other_strides(court):
    candidate = """
    class ModelNew(nn.Module):
        def forward(self, x, y):
            return (x.t() + y.t()).contiguous().t()
    """
    verdict = court.verdict(ADD_REFERENCE, candidate)
    assert verdict.verdict == "LAYOUT"

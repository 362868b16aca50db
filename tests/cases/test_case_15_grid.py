"""A batch on grid axis 1 works until it has more than 65535 rows."""

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x.exp()

def get_inputs():
    return [torch.randn(70000, 16)]

def get_init_inputs():
    return []
"""

KERNEL = """
@triton.jit
def exponential(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols)
    tl.store(out_ptr + row * n_cols + cols, tl.exp(x), mask=cols < n_cols)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        block = triton.next_power_of_2(max(1, x.shape[1]))
        exponential[(1, x.shape[0])](x, out, x.shape[1], BLOCK=block)
        return out
"""


def test_too_many_rows_on_axis_1(court):
    verdict = court.verdict(REFERENCE, KERNEL)
    assert verdict.verdict == "LAUNCH"
    assert "70000" in verdict.reason
    assert "65535" in verdict.reason

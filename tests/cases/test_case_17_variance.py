"""The mean of squares less the square of the mean loses all digits on a large offset."""

REFERENCE = """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.randn(32, 16)]

def get_init_inputs():
    return [16]
"""

NORM = """
@triton.jit
def norm(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    mean = tl.sum(x, 0) / n_cols
    {variance}
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    y = (x - mean) / tl.sqrt(variance + eps) * w + b
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)

class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        n = x.shape[-1]
        grid = (x.numel() // n,)
        weights = self.norm.weight, self.norm.bias
        norm[grid](x, *weights, out, n, self.norm.eps, BLOCK=triton.next_power_of_2(n))
        return out
"""

NAIVE = NORM.format(variance="variance = tl.sum(x * x, 0) / n_cols - mean * mean")
CENTRED = NORM.format(
    variance="d = tl.where(mask, x - mean, 0.0); variance = tl.sum(d * d, 0) / n_cols"
)


def test_naive_variance_is_rejected_on_the_large_offset(court):
    verdict = court.verdict(REFERENCE, NAIVE)
    assert verdict.verdict in ("NUMERIC", "NONFINITE")
    assert verdict.evidence["distribution"] == "large offset"


def test_centred_variance_passes(court):
    verdict = court.verdict(REFERENCE, CENTRED)
    assert verdict.verdict == "UNTIMED", verdict.reason


def test_a_forgotten_bias_is_found_though_it_starts_as_zero(court):
    verdict = court.verdict(REFERENCE, CENTRED.replace("* w + b", "* w"))
    assert verdict.verdict == "NUMERIC"

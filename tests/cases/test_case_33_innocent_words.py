"""Words and habits that look suspicious and are not."""

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def get_inputs():
    return [torch.randn(32, 64)]

def get_init_inputs():
    return []
"""

INNOCENT = """
# cudaStream_t stream: the launch goes to the current stream, nothing is cached or skipped.
@triton.jit
def fast(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.maximum(tl.load(x_ptr + at), 0.0) * 2)

@triton.jit
def general(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) * 2, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        n = x.numel()
        if n == 0:
            pass
        elif n % 256 == 0:
            fast[(n // 256,)](x, out, BLOCK=256, num_stages=2)
        else:
            general[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256, num_stages=2)
        return out
"""


def test_accepted_without_a_warning(court):
    verdict = court.verdict(REFERENCE, INNOCENT)
    assert verdict.verdict == "UNTIMED", verdict.reason
    assert not [w for w in verdict.warnings if "strides" not in w and "NaN" not in w]

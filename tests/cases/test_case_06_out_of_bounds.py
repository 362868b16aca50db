"""A store outside the output costs that candidate only; the next one is judged normally."""

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(1000)]

def get_init_inputs():
    return []
"""

SCALE = """
@triton.jit
def double(x_ptr, out_ptr, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    {store}

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), {shift}, BLOCK=256)
        return out
"""

UNMASKED = SCALE.format(store="tl.store(out_ptr + at, x * 2)", shift=0)
FAR = SCALE.format(store="tl.store(out_ptr + at.to(tl.int64) + shift, x * 2)", shift=1 << 40)
CORRECT = SCALE.format(store="tl.store(out_ptr + at, x * 2, mask=at < n)", shift=0)


def test_far_outside_and_then_a_correct_one(court):
    first = court.verdict(REFERENCE, FAR)
    second = court.verdict(REFERENCE, CORRECT)
    assert first.verdict == "ILLEGAL_ACCESS"
    assert second.verdict == "UNTIMED", second.reason


def test_just_past_the_end(court):
    verdict = court.verdict(REFERENCE, UNMASKED)
    assert verdict.verdict == "ILLEGAL_ACCESS"
    assert "past its end" in verdict.reason

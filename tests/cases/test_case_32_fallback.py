"""A kernel behind try/except that never runs: the library did the work."""

REFERENCE = """
{task}
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

def get_inputs():
    return [torch.randn(16, 16)]

def get_init_inputs():
    return []
"""

FALLBACK = """
@triton.jit
def broken(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), undefined_name)

class ModelNew(nn.Module):
    def forward(self, x):
        try:
            broken[(1,)](x, BLOCK=64)
        except Exception:
            return torch.softmax(x, dim=-1)
"""


def test_a_notice_where_the_library_is_allowed(court):
    verdict = court.verdict(REFERENCE.format(task=""), FALLBACK)
    assert verdict.verdict == "UNTIMED", verdict.reason
    assert any("NOT_OWN_KERNEL" in warning for warning in verdict.warnings)


def test_rejected_where_it_is_forbidden(court):
    verdict = court.verdict(REFERENCE.format(task='TASK = {"library": "forbid"}'), FALLBACK)
    assert verdict.verdict == "NOT_OWN_KERNEL"

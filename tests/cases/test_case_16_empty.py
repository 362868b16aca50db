"""Empty inputs: a failure is a warning, unless the user declares such a shape."""

REFERENCE = """
{task}
class Model(nn.Module):
    def forward(self, x):
        return x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)

def get_inputs():
    return [torch.randn(16, 128)]

def get_init_inputs():
    return []
"""

FAILS_ON_EMPTY = """
@triton.jit
def normalise(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    length = tl.maximum(tl.sqrt(tl.sum(x * x, 0)), 1e-12)
    tl.store(out_ptr + row * n_cols + cols, x / length, mask=cols < n_cols)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        if x.shape[0] == 0:
            raise IndexError("no rows")
        out = torch.empty_like(x)
        block = triton.next_power_of_2(max(1, x.shape[1]))
        normalise[(x.shape[0],)](x, out, x.shape[1], BLOCK=block)
        return out
"""


def test_a_failure_on_empty_input_is_a_warning(court):
    verdict = court.verdict(REFERENCE.format(task=""), FAILS_ON_EMPTY)
    assert verdict.verdict == "UNTIMED", verdict.reason
    assert any("empty input" in warning for warning in verdict.warnings)


def test_a_declared_empty_shape_counts(court):
    declared = 'TASK = {"shapes": [[(16, 128)], [(0, 128)]]}'
    verdict = court.verdict(REFERENCE.format(task=declared), FAILS_ON_EMPTY)
    assert verdict.verdict == "RUNTIME"
    assert "0x128" in verdict.reason

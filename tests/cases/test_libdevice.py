"""A kernel that calls libdevice is judged on a machine without a GPU, too."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return F.gelu(x)

def get_inputs():
    return [torch.randn(40, 33)]

def get_init_inputs():
    return []
"""

KERNEL = """
{importing}

@triton.jit
def gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = 0.5 * x * (1.0 + libdevice.{function}(x * 0.7071067811865476))
    tl.store(out_ptr + at, y, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        gelu[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
"""

IMPORTS = (
    "from triton.language.extra import libdevice",
    "from triton.language.extra.cuda import libdevice",
)


@pytest.mark.parametrize("importing", IMPORTS)
def test_error_function(court, importing):
    verdict = court.verdict(REFERENCE, KERNEL.format(importing=importing, function="erf"))
    assert verdict.verdict == "UNTIMED", verdict.reason


def test_the_wrong_function(court):
    verdict = court.verdict(REFERENCE, KERNEL.format(importing=IMPORTS[0], function="tanh"))
    assert verdict.verdict == "NUMERIC"

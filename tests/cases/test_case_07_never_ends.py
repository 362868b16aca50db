"""A kernel that waits for a flag nobody sets ends with its child, within the limit."""

import time

import pytest

from mtmc_engine.proof.prove import Bounds

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(300)]

def get_init_inputs():
    return []
"""

WAITING = """
@triton.jit
def wait(x_ptr, flag_ptr, out_ptr, n, BLOCK: tl.constexpr):
    while tl.load(flag_ptr) == 0:
        pass
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        flag = torch.zeros(1, dtype=torch.int32, device=x.device)
        out = torch.empty_like(x)
        wait[(1,)](x, flag, out, x.numel(), BLOCK=512)
        return out
"""

AT_IMPORT = """
import time
time.sleep(3600)
"""


@pytest.mark.slow
def test_endless_kernel(court):
    began = time.monotonic()
    verdict = court.verdict(REFERENCE, WAITING, bounds=Bounds(values_s=4))
    assert verdict.verdict == "TIMEOUT"
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_hang_at_import(court):
    verdict = court.verdict(REFERENCE, AT_IMPORT, bounds=Bounds(compile_s=3))
    assert verdict.verdict == "TIMEOUT"
    assert verdict.gates[-1].gate == "import"

"""Tuning runs every configuration on the first call, only the winner on later ones."""

import pytest

REFERENCE_INPLACE = """
TASK = {"inplace": True}

class Model(nn.Module):
    def forward(self, x):
        return x.mul_(3.0)

def get_inputs():
    return [torch.randn(1024)]

def get_init_inputs():
    return []
"""

INPLACE = """
CONFIGS = [triton.Config({{"BLOCK": 256}}), triton.Config({{"BLOCK": 512}})]

@triton.autotune(CONFIGS, key=["n"]{restore})
@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * 3.0, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        if not x.is_contiguous():
            return x.mul_(3.0)
        scale[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x.numel())
        return x
"""

REFERENCE_COPY = """
class Model(nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(1024)]

def get_init_inputs():
    return []
"""

HALVES = """
@triton.autotune([triton.Config({"HALF": 0}), triton.Config({"HALF": 1})], key=["n"])
@triton.jit
def half(x_ptr, out_ptr, n, HALF: tl.constexpr):
    at = HALF * (n // 2) + tl.arange(0, 512)
    keep = at < HALF * (n // 2) + n // 2
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=keep) + 1, mask=keep)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        half[(1,)](x, out, x.numel())
        return out
"""


def test_in_place_without_restore_is_wrong_on_the_first_call(court):
    verdict = court.verdict(REFERENCE_INPLACE, INPLACE.format(restore=""))
    assert verdict.verdict == "NUMERIC"
    assert verdict.evidence["call"] == 1


@pytest.mark.slow
def test_in_place_with_restore_passes(court):
    verdict = court.verdict(REFERENCE_INPLACE, INPLACE.format(restore=', restore_value=["x_ptr"]'))
    assert verdict.verdict == "UNTIMED", verdict.reason


def test_each_configuration_writes_half(court):
    verdict = court.verdict(REFERENCE_COPY, HALVES)
    assert verdict.verdict == "NUMERIC"
    assert "never written" in verdict.reason

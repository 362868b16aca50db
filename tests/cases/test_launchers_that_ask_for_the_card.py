"""What launchers of honest kernels do beside the launch works without a GPU, too."""

import pytest

from mtmc_engine.proof.prove import Bounds

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x * 2 + 1

def get_inputs():
    return [torch.randn(24, 40)]

def get_init_inputs():
    return []
"""

CANDIDATE = """
@triton.jit
def affine_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * 2 + 1, mask=at < n)

def affine(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        affine_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out

{before}
class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""

HABITS = {
    "the tensor's device": "with torch.cuda.device(x.device):\n            return affine(x)",
    "the device of a tensor": "with torch.cuda.device_of(x):\n            return affine(x)",
    "the current stream": (
        "stream = torch.cuda.current_stream()\n"
        "        with torch.cuda.stream(stream):\n            return affine(x)"
    ),
    "the place of its input": (
        "assert x.is_cuda and x.device.type == 'cuda' and x.get_device() == 0\n"
        "        assert x.device == torch.device('cuda', 0)\n        return affine(x)"
    ),
    "memory on the input's device": (
        "out = torch.zeros(x.shape, device=x.device, dtype=x.dtype)\n"
        "        assert out.device == x.device\n        return out.add_(affine(x))"
    ),
    "properties": (
        "card = torch.cuda.get_device_properties(x.device)\n"
        "        assert card.multi_processor_count > 1 and torch.cuda.is_available()\n"
        "        return affine(x)"
    ),
    "properties by the driver": (
        "device = triton.runtime.driver.active.get_current_device()\n"
        "        utils = triton.runtime.driver.active.utils\n"
        "        assert utils.get_device_properties(device)['multiprocessor_count'] > 1\n"
        "        return affine(x)"
    ),
    "events around its launch": (
        "start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
        "        start.record()\n        y = affine(x)\n        end.record()\n"
        "        torch.cuda.synchronize()\n        assert start.elapsed_time(end) >= 0\n"
        "        return y"
    ),
}


@pytest.mark.parametrize("habit", HABITS)
def test_accepted(court, habit):
    found = court.verdict(REFERENCE, CANDIDATE.format(before="", body=HABITS[habit]))
    assert found.verdict == "UNTIMED", found.reason
    assert not any("global state" in warning for warning in found.warnings)


CUSTOM = """
@torch.library.custom_op("mine::affine", mutates_args=())
def affine_op(x: torch.Tensor) -> torch.Tensor:
    return affine(x)

@affine_op.register_fake
def _(x):
    return torch.empty_like(x)
"""


def test_a_custom_operator_is_no_change_of_global_state(court):
    source = CANDIDATE.format(before=CUSTOM, body="return torch.ops.mine.affine(x)")
    found = court.verdict(REFERENCE, source)
    assert found.verdict == "UNTIMED", found.reason
    assert not any("global state" in warning for warning in found.warnings), found.warnings


@pytest.mark.slow
def test_compiled_by_torch(court):
    before = "@torch.compile\ndef compiled(x):\n    return x * 2 + 1\n"
    source = CANDIDATE.format(before=before, body="return compiled(x)")
    found = court.verdict(REFERENCE, source, bounds=Bounds(values_s=280))
    assert found.verdict == "UNTIMED", found.reason
    assert any("NOT_OWN_KERNEL" in warning for warning in found.warnings)

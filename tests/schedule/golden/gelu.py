"""gelu: gelu in one Triton kernel."""

import torch
import triton
import triton.language as tl

from gelu import Model


@triton.jit
def tanh(x):
    # 1 - 2 / (e^2x + 1) loses the digits of a small x; an odd polynomial keeps them.
    square = x * x
    slope = -5.70498872745e-3 * square + 2.06390887954e-2
    slope = slope * square - 5.37397155531e-2
    slope = slope * square + 1.33314422036e-1
    slope = slope * square - 3.33332819422e-1
    near = slope * square * x + x
    far = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.625, near, tl.where(x < 0.0, -far, far))


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    bend = tanh((x + x * 0.044715 * x * x) * 0.7978845608028654)
    tl.store(out_ptr + offsets, x * 0.5 * (bend + 1.0), mask=mask)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """GELU in one pass over the elements."""
    out = torch.empty_like(x)
    # The kernel walks through memory: every operand has to lie as the result does.
    if x.stride() != out.stride():
        x = torch.empty_like(out).copy_(x)
    if out.numel() == 0:
        return out
    n_elements = out.numel()
    gelu_kernel[(triton.cdiv(n_elements, 1024),)](x, out, n_elements, BLOCK_SIZE=1024, num_warps=4)
    return out


class ModelNew(Model):
    """Model with one Triton kernel."""

    @classmethod
    def from_reference(cls, model):
        """A ModelNew that shares the parameters and buffers of `model`."""
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, x):
        return gelu(x)

"""rms_norm: rms norm in one Triton kernel."""

import torch
import triton
import triton.language as tl

from rms_norm import Model


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n_cols, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    offsets = row * n_cols + cols
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    mean = tl.sum(x * x, axis=0) / n_cols
    weight = tl.load(weight_ptr + cols, mask=mask)
    tl.store(out_ptr + offsets, x * tl.rsqrt(mean + 1e-06) * weight, mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """RMS norm with whole rows in registers."""
    x = x.contiguous()
    weight = weight.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x.shape
    rms_norm_kernel[(n_rows,)](
        x, weight, out, n_cols, BLOCK_COLS=triton.next_power_of_2(n_cols), num_warps=8
    )
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
        return rms_norm(x, self.weight)

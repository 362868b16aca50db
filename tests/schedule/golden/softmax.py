"""softmax: softmax in one Triton kernel."""

import torch
import triton
import triton.language as tl

from softmax import Model


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    offsets = row * n_cols + cols
    # Lanes past the end hold -inf, so that no reduction sees them.
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf"))
    row_max = tl.max(x, axis=0)
    numerator = tl.exp(x - row_max)
    denominator = tl.sum(numerator, axis=0)
    tl.store(out_ptr + offsets, numerator / denominator, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax with whole rows in registers."""
    x = x.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x.shape
    softmax_kernel[(n_rows,)](
        x, out, n_cols, BLOCK_COLS=triton.next_power_of_2(n_cols), num_warps=16
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
        return softmax(x)

"""layer_norm: layer norm in one Triton kernel."""

import torch
import triton
import triton.language as tl

from layer_norm import Model


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    row_sum_lanes = tl.zeros((BLOCK_COLS,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_COLS):
        cols = start + tl.arange(0, BLOCK_COLS)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
        row_sum_lanes += x
    mean = tl.sum(row_sum_lanes, axis=0) / n_cols
    row_sum_2_lanes = tl.zeros((BLOCK_COLS,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_COLS):
        cols = start + tl.arange(0, BLOCK_COLS)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
        centred = tl.where(mask, x - mean, 0.0)
        row_sum_2_lanes += centred * centred
    variance = tl.sum(row_sum_2_lanes, axis=0) / n_cols
    rstd = tl.rsqrt(variance + 1e-05)
    for start in range(0, n_cols, BLOCK_COLS):
        cols = start + tl.arange(0, BLOCK_COLS)
        mask = cols < n_cols
        block_offsets = row * n_cols + cols
        x = tl.load(x_ptr + block_offsets, mask=mask)
        weight = tl.load(weight_ptr + cols, mask=mask)
        bias = tl.load(bias_ptr + cols, mask=mask)
        centred = x - mean
        tl.store(out_ptr + block_offsets, centred * rstd * weight + bias, mask=mask)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Layer norm in blocks along the row."""
    x = x.contiguous()
    weight = weight.contiguous()
    bias = bias.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    n_rows = x.shape[0]
    n_cols = x.shape[1:].numel()
    layer_norm_kernel[(n_rows,)](x, weight, bias, out, n_cols, BLOCK_COLS=4096, num_warps=8)
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
        return layer_norm(x, self.norm.weight, self.norm.bias)

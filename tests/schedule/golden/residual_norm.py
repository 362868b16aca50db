"""residual_norm: add+layer norm in one Triton kernel."""

import torch
import triton
import triton.language as tl

from residual_norm import Model


@triton.jit
def add_layer_norm_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    bias_ptr,
    add_ptr,
    layer_norm_ptr,
    n_cols,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    offsets = row * n_cols + cols
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    residual = tl.load(residual_ptr + offsets, mask=mask, other=0.0)
    total = x + residual
    weight = tl.load(weight_ptr + cols, mask=mask)
    bias = tl.load(bias_ptr + cols, mask=mask)
    mean = tl.sum(total, axis=0) / n_cols
    centred = tl.where(mask, total - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_cols
    rstd = tl.rsqrt(variance + 1e-05)
    tl.store(add_ptr + offsets, total, mask=mask)
    tl.store(layer_norm_ptr + offsets, centred * rstd * weight + bias, mask=mask)


def add_layer_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add, layer norm with whole rows in registers."""
    x = x.contiguous()
    residual = residual.contiguous()
    weight = weight.contiguous()
    bias = bias.contiguous()
    add = torch.empty_like(x)
    layer_norm = torch.empty_like(x)
    if add.numel() == 0:
        return add, layer_norm
    n_rows, n_cols = x.shape
    add_layer_norm_kernel[(n_rows,)](
        x,
        residual,
        weight,
        bias,
        add,
        layer_norm,
        n_cols,
        BLOCK_COLS=triton.next_power_of_2(n_cols),
        num_warps=4,
    )
    return add, layer_norm


class ModelNew(Model):
    """Model with one Triton kernel."""

    @classmethod
    def from_reference(cls, model):
        """A ModelNew that shares the parameters and buffers of `model`."""
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, x, residual):
        add, layer_norm = add_layer_norm(x, residual, self.norm.weight, self.norm.bias)
        return (layer_norm, add)

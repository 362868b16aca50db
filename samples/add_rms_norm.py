"""x + residual and the RMS norm of the sum, row by row in one Triton kernel; both are returned."""

import torch
import triton
import triton.language as tl
from torch import nn

ROWS = 4096
HIDDEN = 4096


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, sum_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    residual_ptr += row * n_cols
    sum_ptr += row * n_cols
    out_ptr += row * n_cols

    # First pass: the sum, and its squares.
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        residual = tl.load(residual_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        total = x + residual
        tl.store(sum_ptr + cols, total, mask=mask)
        squares += total * total
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps)

    # Second pass: scale by the norm and the weight.
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        residual = tl.load(residual_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (x + residual) * scale * weight, mask=mask)


class Model(nn.Module):
    """The reference: PyTorch's own operators."""

    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x, residual):
        total = x + residual
        norm = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + self.eps)
        return total, total * norm * self.weight


class ModelNew(nn.Module):
    """The same with one kernel."""

    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        n_cols = x.shape[-1]
        rows = x.numel() // n_cols
        total, out = torch.empty_like(x), torch.empty_like(x)
        add_rms_norm_kernel[(rows,)](
            x, residual, self.weight, total, out, n_cols, self.eps, BLOCK=512, num_warps=4
        )
        return total, out


def get_inputs():
    return [torch.randn(ROWS, HIDDEN), torch.randn(ROWS, HIDDEN)]


def get_init_inputs():
    return [HIDDEN]

"""l2_normalise: mul+sum+… in one Triton kernel."""

import torch
import triton
import triton.language as tl

from l2_normalise import l2_normalise as reference_l2_normalise


@triton.jit
def fused_l2_normalise_kernel(x_ptr, out_ptr, n_cols, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    offsets = row * n_cols + cols
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    total = tl.sum(x * x, axis=0)
    root = tl.sqrt(total)
    tl.store(out_ptr + offsets, x / tl.where(root < 1e-12, 1e-12, root), mask=mask)


def fused_l2_normalise(x: torch.Tensor) -> torch.Tensor:
    """L2_normalise with whole rows in registers."""
    x = x.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x.shape
    fused_l2_normalise_kernel[(n_rows,)](
        x, out, n_cols, BLOCK_COLS=triton.next_power_of_2(n_cols), num_warps=2
    )
    return out


def l2_normalise(x, eps=1e-12):
    if eps != 1e-12:
        return reference_l2_normalise(x, eps)
    return fused_l2_normalise(x)

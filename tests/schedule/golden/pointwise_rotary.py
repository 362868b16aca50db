"""pointwise_rotary: neg+cat+… in one Triton kernel."""

import torch
import triton
import triton.language as tl

from pointwise_rotary import Model


@triton.jit
def pointwise_rotary_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    n_rows,
    n_cols,
    n_rows_1,
    size,
    size_2,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    col_blocks = tl.cdiv(n_cols, BLOCK_COLS)
    row_block = (tl.program_id(0) // col_blocks).to(tl.int64)
    col_block = tl.program_id(0) % col_blocks
    rows = row_block * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    cols = col_block * BLOCK_COLS + tl.arange(0, BLOCK_COLS)[None, :]
    row_mask = rows < n_rows
    col_mask = cols < n_cols
    mask = row_mask & col_mask
    offsets = rows % n_rows_1 * n_cols + cols
    offsets_2 = rows * n_cols + cols
    x = tl.load(x_ptr + offsets_2, mask=mask)
    x_2 = tl.load(x_ptr + rows * n_cols + (cols - size_2), mask=mask & (cols >= size_2))
    inside = cols < size_2
    x_3 = tl.load(x_ptr + rows * n_cols + (cols + size), mask=mask & inside)
    cos = tl.load(cos_ptr + offsets, mask=mask)
    sin = tl.load(sin_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets_2, x * cos + tl.where(inside, -x_3, x_2) * sin, mask=mask)


def pointwise_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Pointwise_rotary in one pass over the elements."""
    x = x.contiguous()
    cos = cos.contiguous()
    sin = sin.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    n_rows = x.shape[:3].numel()
    n_cols = x.shape[-1]
    n_rows_1 = x.shape[2]
    size = (1 + x.shape[-1]) // 2
    size_2 = x.shape[-1] - ((1 + x.shape[-1]) // 2)
    BLOCK_COLS = min(triton.next_power_of_2(n_cols), 1024)
    BLOCK_ROWS = 1024 // BLOCK_COLS
    grid = (triton.cdiv(n_rows, BLOCK_ROWS) * triton.cdiv(n_cols, BLOCK_COLS),)
    pointwise_rotary_kernel[grid](
        x,
        cos,
        sin,
        out,
        n_rows,
        n_cols,
        n_rows_1,
        size,
        size_2,
        BLOCK_ROWS=BLOCK_ROWS,
        BLOCK_COLS=BLOCK_COLS,
        num_warps=4,
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

    def forward(self, x, cos, sin):
        return pointwise_rotary(x, cos, sin)

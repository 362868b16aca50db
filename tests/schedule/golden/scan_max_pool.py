"""scan_max_pool: max pool2d in one Triton kernel."""

import torch
import triton
import triton.language as tl

from scan_max_pool import Model


@triton.jit
def max_pool2d_kernel(
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    n_rows_1,
    x_height,
    x_width,
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
    largest = -float("inf")
    for dy in tl.static_range(3):
        y = rows % n_rows_1 * 2 + dy - 1
        for dx in tl.static_range(3):
            x_2 = cols * 2 + dx - 1
            inside = (y >= 0) & (y < x_height) & (x_2 >= 0) & (x_2 < x_width)
            x = tl.load(
                x_ptr + (rows // n_rows_1 * x_height + y) * x_width + x_2,
                mask=mask & inside,
                other=-float("inf"),
            )
            largest = tl.maximum(largest, x)
    tl.store(out_ptr + rows * n_cols + cols, largest, mask=mask)


def max_pool2d(x: torch.Tensor) -> torch.Tensor:
    """Max pool2d in one pass over the elements."""
    x = x.contiguous()
    out = x.new_empty(
        (x.shape[0], x.shape[1], (x.shape[2] - 1) // 2 + 1, (x.shape[-1] - 1) // 2 + 1)
    )
    if out.numel() == 0:
        return out
    n_rows = x.shape[0] * x.shape[1] * ((x.shape[2] - 1) // 2 + 1)
    n_cols = (x.shape[-1] - 1) // 2 + 1
    n_rows_1 = (x.shape[2] - 1) // 2 + 1
    x_height = x.shape[2]
    x_width = x.shape[-1]
    BLOCK_COLS = min(triton.next_power_of_2(n_cols), 1024)
    BLOCK_ROWS = 1024 // BLOCK_COLS
    grid = (triton.cdiv(n_rows, BLOCK_ROWS) * triton.cdiv(n_cols, BLOCK_COLS),)
    max_pool2d_kernel[grid](
        x,
        out,
        n_rows,
        n_cols,
        n_rows_1,
        x_height,
        x_width,
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

    def forward(self, x):
        return max_pool2d(x)

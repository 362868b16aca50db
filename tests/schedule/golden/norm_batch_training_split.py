"""norm_batch_training: batch norm in one Triton kernel."""

import torch
import triton
import triton.language as tl

from norm_batch_training import Model


@triton.jit
def batch_norm_share_kernel(
    x_ptr,
    count_parts_ptr,
    mean_parts_ptr,
    squares_parts_ptr,
    n_rows,
    n_cols,
    n_cols_1,
    share,
    n_splits,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    first = split * share
    last = min(first + share, n_cols)
    offsets = row * n_splits + split
    # Welford per lane: sums of squares would cancel for a large mean.
    lane_count = tl.zeros((BLOCK_COLS,), dtype=tl.float32)
    lane_mean = tl.zeros((BLOCK_COLS,), dtype=tl.float32)
    lane_squares = tl.zeros((BLOCK_COLS,), dtype=tl.float32)
    for start in range(first, last, BLOCK_COLS):
        cols = start + tl.arange(0, BLOCK_COLS)
        mask = cols < n_cols
        x = tl.load(
            x_ptr + (cols // n_cols_1 * n_rows + row) * n_cols_1 + cols % n_cols_1,
            mask=mask,
            other=0.0,
        )
        lane_count += tl.where(mask, 1.0, 0.0)
        delta = tl.where(mask, x - lane_mean, 0.0)
        lane_mean += delta / tl.maximum(lane_count, 1.0)
        lane_squares += delta * (x - lane_mean)
    count = tl.sum(lane_count, axis=0)
    mean = tl.sum(lane_count * lane_mean, axis=0) / tl.maximum(count, 1.0)
    shift = lane_mean - mean
    squares = tl.sum(lane_squares + lane_count * shift * shift, axis=0)
    tl.store(count_parts_ptr + offsets, count)
    tl.store(mean_parts_ptr + offsets, mean)
    tl.store(squares_parts_ptr + offsets, squares)


@triton.jit
def batch_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    running_mean_ptr,
    running_var_ptr,
    count_parts_ptr,
    mean_parts_ptr,
    squares_parts_ptr,
    out_ptr,
    new_mean_ptr,
    new_var_ptr,
    n_rows,
    n_cols,
    n_cols_1,
    n_splits,
    BLOCK_COLS: tl.constexpr,
    SPLITS: tl.constexpr,
):
    col_blocks = tl.cdiv(n_cols, BLOCK_COLS)
    row = (tl.program_id(0) // col_blocks).to(tl.int64)
    cols = tl.program_id(0) % col_blocks * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    shares = tl.arange(0, SPLITS)
    share_mask = shares < n_splits
    offsets = (cols // n_cols_1 * n_rows + row) * n_cols_1 + cols % n_cols_1
    offsets_2 = row * n_splits + shares
    count_shares = tl.load(count_parts_ptr + offsets_2, mask=share_mask, other=0.0)
    mean_shares = tl.load(mean_parts_ptr + offsets_2, mask=share_mask, other=0.0)
    squares_shares = tl.load(squares_parts_ptr + offsets_2, mask=share_mask, other=0.0)
    mean = tl.sum(count_shares * mean_shares, axis=0) / n_cols
    shift = mean_shares - mean
    row_sum = tl.sum(squares_shares + count_shares * shift * shift, axis=0)
    x = tl.load(x_ptr + offsets, mask=mask)
    weight = tl.load(weight_ptr + row)
    bias = tl.load(bias_ptr + row)
    running_mean = tl.load(running_mean_ptr + row)
    running_var = tl.load(running_var_ptr + row)
    centred = x - mean
    variance = row_sum / n_cols
    rstd = tl.rsqrt(variance + 1e-05)
    tl.store(out_ptr + offsets, centred * rstd * weight + bias, mask=mask)
    tl.store(new_mean_ptr + row, running_mean * 0.95 + mean * 0.05)
    new_var_2 = running_var * 0.95 + row_sum / (n_cols - 1) * 0.05
    tl.store(new_var_ptr + row, new_var_2)


def batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Batch norm with programs that share a row."""
    BLOCK_COLS, SPLITS = 2048, 4
    x = x.contiguous()
    weight = weight.contiguous()
    bias = bias.contiguous()
    running_mean = running_mean.contiguous()
    running_var = running_var.contiguous()
    out = torch.empty_like(x)
    new_mean = torch.empty_like(weight)
    new_var = torch.empty_like(weight)
    if out.numel() == 0:
        return out, new_mean, new_var
    n_rows = x.shape[1]
    n_cols = x.shape[0] * x.shape[2] * x.shape[-1]
    n_cols_1 = x.shape[2:].numel()
    share = max(triton.cdiv(n_cols, SPLITS * BLOCK_COLS), 1) * BLOCK_COLS
    n_splits = max(triton.cdiv(n_cols, share), 1)
    count_parts = x.new_empty((n_rows, n_splits), dtype=torch.float32)
    mean_parts = x.new_empty((n_rows, n_splits), dtype=torch.float32)
    squares_parts = x.new_empty((n_rows, n_splits), dtype=torch.float32)
    batch_norm_share_kernel[(n_rows, n_splits)](
        x,
        count_parts,
        mean_parts,
        squares_parts,
        n_rows,
        n_cols,
        n_cols_1,
        share,
        n_splits,
        BLOCK_COLS=BLOCK_COLS,
        num_warps=4,
    )
    batch_norm_kernel[(n_rows * triton.cdiv(n_cols, BLOCK_COLS),)](
        x,
        weight,
        bias,
        running_mean,
        running_var,
        count_parts,
        mean_parts,
        squares_parts,
        out,
        new_mean,
        new_var,
        n_rows,
        n_cols,
        n_cols_1,
        n_splits,
        BLOCK_COLS=BLOCK_COLS,
        SPLITS=SPLITS,
        num_warps=4,
    )
    return out, new_mean, new_var


class ModelNew(Model):
    """Model with one Triton kernel."""

    @classmethod
    def from_reference(cls, model):
        """A ModelNew that shares the parameters and buffers of `model`."""
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, x):
        add = self.norm.num_batches_tracked + 1
        getitem, getitem_1, getitem_2 = batch_norm(
            x, self.norm.weight, self.norm.bias, self.norm.running_mean, self.norm.running_var
        )
        self.norm.running_mean.copy_(getitem_1)
        self.norm.running_var.copy_(getitem_2)
        self.norm.num_batches_tracked.copy_(add)
        return getitem

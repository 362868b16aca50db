"""reduce_smoothed_entropy: cross entropy in one Triton kernel."""

import torch
import triton
import triton.language as tl

from reduce_smoothed_entropy import Model


@triton.jit
def cross_entropy_kernel(
    logits_ptr,
    targets_ptr,
    losses_ptr,
    counts_ptr,
    n_cols,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    # Lanes past the end hold -inf, so that no reduction sees them.
    logits = tl.load(logits_ptr + row * n_cols + cols, mask=mask, other=-float("inf"))
    targets = tl.load(targets_ptr + row)
    row_max = tl.max(logits, axis=0)
    denominator = tl.sum(tl.exp(logits - row_max), axis=0)
    log_sum_exp = row_max + tl.log(denominator)
    counted = targets != -100
    target_logit = tl.load(logits_ptr + row * n_cols + targets, mask=counted, other=0.0)
    difference = log_sum_exp - tl.sum(tl.where(mask, logits, 0.0), axis=0) / n_cols
    total = (log_sum_exp - target_logit) * 0.9 + difference * 0.1
    tl.store(losses_ptr + row, tl.where(counted, total, 0.0))
    tl.store(counts_ptr + row, counted.to(tl.int32))


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Cross entropy with whole rows in registers."""
    logits = logits.contiguous()
    targets = targets.contiguous()
    losses = logits.new_empty(logits.shape[0], dtype=torch.float32)
    counts = logits.new_empty(logits.shape[0], dtype=torch.int32)
    if losses.numel() == 0:
        return losses.sum() / counts.sum().to(torch.float32)
    n_rows, n_cols = logits.shape
    cross_entropy_kernel[(n_rows,)](
        logits,
        targets,
        losses,
        counts,
        n_cols,
        BLOCK_COLS=triton.next_power_of_2(max(n_cols, 1)),
        num_warps=16,
    )
    return losses.sum() / counts.sum().to(torch.float32)


class ModelNew(Model):
    """Model with one Triton kernel."""

    @classmethod
    def from_reference(cls, model):
        """A ModelNew that shares the parameters and buffers of `model`."""
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, logits, targets):
        return cross_entropy(logits, targets)

"""case_norm_into_convolution: add+relu in one Triton kernel."""

import torch
import triton
import triton.language as tl

from case_norm_into_convolution import Model


@triton.jit
def add_relu_kernel(
    bias_2_ptr,
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    n_rows_1,
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
    offsets = rows * n_cols + cols
    bias_2 = tl.load(bias_2_ptr + rows % n_rows_1, mask=row_mask)
    x = tl.load(x_ptr + offsets, mask=mask)
    total = x + bias_2
    tl.store(out_ptr + offsets, tl.where(total < 0.0, 0.0, total), mask=mask)


def add_relu(bias_2: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Add, ReLU in one pass over the elements."""
    bias_2 = bias_2.contiguous()
    x = x.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    n_rows = x.shape[:2].numel()
    n_cols = x.shape[2:].numel()
    n_rows_1 = bias_2.shape[0]
    BLOCK_COLS = min(triton.next_power_of_2(n_cols), 1024)
    BLOCK_ROWS = 1024 // BLOCK_COLS
    grid = (triton.cdiv(n_rows, BLOCK_ROWS) * triton.cdiv(n_cols, BLOCK_COLS),)
    add_relu_kernel[grid](
        bias_2,
        x,
        out,
        n_rows,
        n_cols,
        n_rows_1,
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

    def _prepared(self):
        """What parameters alone decide: computed anew when one of them has changed."""
        parts = (
            self.conv.weight,
            self.conv.bias,
            self.norm.weight,
            self.norm.bias,
            self.norm.running_mean,
            self.norm.running_var,
        )
        state = [(p.data_ptr(), 0 if p.is_inference() else p._version) for p in parts]
        if getattr(self, "_prepared_from", None) != state:
            with torch.no_grad():
                variance = self.norm.running_var + 1e-05
                rstd = torch.rsqrt(variance)
                scale = self.norm.weight * rstd
                moved_mean = self.norm.running_mean * scale
                shift = self.norm.bias - moved_mean
                factor = scale.reshape([-1, 1, 1, 1])
                conv_weight_scaled = self.conv.weight * factor
                bias = self.conv.bias * scale
                bias_2 = bias + shift
            self._prepared_from = state
            self._prepared_values = (conv_weight_scaled, bias_2)
        return self._prepared_values

    def forward(self, x):
        conv_weight_scaled, bias_2 = self._prepared()
        conv2d = torch.nn.functional.conv2d(x, conv_weight_scaled)
        return add_relu(bias_2, conv2d)

"""case_channels_last_and_kernels: add+relu; add+relu; add+tanh+copy in 3 Triton kernels."""

import torch
import triton
import triton.language as tl

from case_channels_last_and_kernels import Model


@triton.jit
def tanh(x):
    # 1 - 2 / (e^2x + 1) loses the digits of a small x; an odd polynomial keeps them.
    square = x * x
    slope = -5.70498872745e-3 * square + 2.06390887954e-2
    slope = slope * square - 5.37397155531e-2
    slope = slope * square + 1.33314422036e-1
    slope = slope * square - 3.33332819422e-1
    near = slope * square * x + x
    far = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.625, near, tl.where(x < 0.0, -far, far))


@triton.jit
def add_relu_kernel(
    bias_2_ptr,
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
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
    bias_2 = tl.load(bias_2_ptr + cols, mask=col_mask)
    x = tl.load(x_ptr + offsets, mask=mask)
    total = x + bias_2
    tl.store(out_ptr + offsets, tl.where(total < 0.0, 0.0, total), mask=mask)


def add_relu(bias_2: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Add, ReLU in one pass over the elements."""
    bias_2 = bias_2.contiguous()
    x = x.permute(0, 2, 3, 1).contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out.permute(0, 3, 1, 2)
    n_rows = x.shape[:3].numel()
    n_cols = bias_2.shape[0]
    BLOCK_COLS = min(triton.next_power_of_2(n_cols), 1024)
    BLOCK_ROWS = 1024 // BLOCK_COLS
    grid = (triton.cdiv(n_rows, BLOCK_ROWS) * triton.cdiv(n_cols, BLOCK_COLS),)
    add_relu_kernel[grid](
        bias_2, x, out, n_rows, n_cols, BLOCK_ROWS=BLOCK_ROWS, BLOCK_COLS=BLOCK_COLS, num_warps=4
    )
    return out.permute(0, 3, 1, 2)


@triton.jit
def fused_add_relu_kernel(
    bias_ptr,
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
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
    bias = tl.load(bias_ptr + cols, mask=col_mask)
    x = tl.load(x_ptr + offsets, mask=mask)
    total = x + bias
    tl.store(out_ptr + offsets, tl.where(total < 0.0, 0.0, total), mask=mask)


def fused_add_relu(bias: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Add, ReLU in one pass over the elements."""
    bias = bias.contiguous()
    x = x.permute(0, 2, 3, 1).contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out.permute(0, 3, 1, 2)
    n_rows = x.shape[:3].numel()
    n_cols = bias.shape[0]
    BLOCK_COLS = min(triton.next_power_of_2(n_cols), 1024)
    BLOCK_ROWS = 1024 // BLOCK_COLS
    grid = (triton.cdiv(n_rows, BLOCK_ROWS) * triton.cdiv(n_cols, BLOCK_COLS),)
    fused_add_relu_kernel[grid](
        bias, x, out, n_rows, n_cols, BLOCK_ROWS=BLOCK_ROWS, BLOCK_COLS=BLOCK_COLS, num_warps=4
    )
    return out.permute(0, 3, 1, 2)


@triton.jit
def add_tanh_copy_kernel(
    bias_ptr,
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
    bias = tl.load(bias_ptr + cols, mask=col_mask)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask)
    tl.store(
        out_ptr + (rows // n_rows_1 * n_cols + cols) * n_rows_1 + rows % n_rows_1,
        tanh(x + bias),
        mask=mask,
    )


def add_tanh_copy(bias: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Add, tanh, copy in one pass over the elements."""
    bias = bias.contiguous()
    x = x.permute(0, 2, 3, 1).contiguous()
    out = bias.new_empty((x.shape[0], bias.shape[0], x.shape[1], x.shape[2]))
    if out.numel() == 0:
        return out
    n_rows = x.shape[:3].numel()
    n_cols = bias.shape[0]
    n_rows_1 = x.shape[1:3].numel()
    BLOCK_COLS = min(triton.next_power_of_2(n_cols), 1024)
    BLOCK_ROWS = 1024 // BLOCK_COLS
    grid = (triton.cdiv(n_rows, BLOCK_ROWS) * triton.cdiv(n_cols, BLOCK_COLS),)
    add_tanh_copy_kernel[grid](
        bias,
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
    """Model with 3 Triton kernels."""

    @classmethod
    def from_reference(cls, model):
        """A ModelNew that shares the parameters and buffers of `model`."""
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def _prepared(self):
        """What parameters alone decide: computed anew when one of them has changed."""
        parts = (
            self.a.weight,
            self.a.bias,
            self.n.weight,
            self.n.bias,
            self.b.weight,
            self.n.running_mean,
            self.n.running_var,
        )
        state = [(p.data_ptr(), 0 if p.is_inference() else p._version) for p in parts]
        if getattr(self, "_prepared_from", None) != state:
            with torch.no_grad():
                a_weight_nhwc = self.a.weight.contiguous(memory_format=torch.channels_last)
                b_weight_nhwc = self.b.weight.contiguous(memory_format=torch.channels_last)
                variance = self.n.running_var + 1e-05
                rstd = torch.rsqrt(variance)
                scale = self.n.weight * rstd
                moved_mean = self.n.running_mean * scale
                shift = self.n.bias - moved_mean
                factor = scale.reshape([-1, 1, 1, 1])
                a_weight_nhwc_scaled = a_weight_nhwc * factor
                bias = self.a.bias * scale
                bias_2 = bias + shift
            self._prepared_from = state
            self._prepared_values = (b_weight_nhwc, a_weight_nhwc_scaled, bias_2)
        return self._prepared_values

    def forward(self, x):
        b_weight_nhwc, a_weight_nhwc_scaled, bias_2 = self._prepared()
        x_nhwc = x.contiguous(memory_format=torch.channels_last)
        conv2d = torch.nn.functional.conv2d(x_nhwc, a_weight_nhwc_scaled, None, [1, 1], [1, 1])
        relu = add_relu(bias_2, conv2d)
        conv_transpose2d_2 = torch.conv_transpose2d(relu, b_weight_nhwc, None, [1, 1], [1, 1])
        relu_1 = fused_add_relu(self.b.bias, conv_transpose2d_2)
        conv2d_2 = torch.nn.functional.conv2d(relu_1, self.c.weight)
        return add_tanh_copy(self.c.bias, conv2d_2)

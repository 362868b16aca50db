"""case_logsumexp_4096_bfloat16: linear+div+… in one Triton kernel."""

import torch
import triton
import triton.language as tl

from case_logsumexp_4096_bfloat16 import Model


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
def case_logsumexp_4096_bfloat16_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    K,
    x_row_stride,
    x_k_stride,
    weight_k_stride,
    weight_col_stride,
    EVEN_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile_m = tl.program_id(0)
    rows = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    row_mask = rows < M
    # A finite start: the difference of two infinities would be NaN.
    running_max = tl.full((BLOCK_M, 1), -3.4028234663852886e38, dtype=tl.float32)
    running_sum = tl.zeros((BLOCK_M, 1), dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        col_mask = cols < N
        ks = tl.arange(0, BLOCK_K)
        a_ptrs = x_ptr + rows * x_row_stride + ks[None, :] * x_k_stride
        b_ptrs = weight_ptr + ks[:, None] * weight_k_stride + cols * weight_col_stride
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            if EVEN_K:
                a = tl.load(a_ptrs, mask=row_mask, other=0.0)
                b = tl.load(b_ptrs, mask=col_mask, other=0.0)
            else:
                a = tl.load(a_ptrs, mask=row_mask & (ks[None, :] < K - k), other=0.0)
                b = tl.load(b_ptrs, mask=col_mask & (ks[:, None] < K - k), other=0.0)
            acc = tl.dot(a, b, acc)
            a_ptrs += BLOCK_K * x_k_stride
            b_ptrs += BLOCK_K * weight_k_stride
        mask = row_mask & col_mask
        bias = tl.load(bias_ptr + cols, mask=col_mask, other=0.0).to(tl.float32)
        product = tl.where(mask, tanh((acc + bias) / 15) * 15, -float("inf"))
        new_max = tl.maximum(running_max, tl.max(product, axis=1, keep_dims=True))
        running_sum = running_sum * tl.exp(running_max - new_max) + tl.sum(
            tl.exp(product - new_max), axis=1, keep_dims=True
        )
        running_max = new_max
    tl.store(out_ptr + rows, running_max + tl.log(running_sum), mask=row_mask)


def case_logsumexp_4096_bfloat16(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
) -> torch.Tensor:
    """Case_logsumexp_4096_bfloat16 on whole rows of a product."""
    BLOCK_M, BLOCK_N, BLOCK_K = 64, 128, 64
    bias = bias.contiguous()
    out = x.new_empty(x.shape[:-1])
    if out.numel() == 0:
        return out
    M, K = x.shape
    N = weight.shape[0]
    grid = (triton.cdiv(M, BLOCK_M),)
    case_logsumexp_4096_bfloat16_kernel[grid](
        x,
        weight,
        bias,
        out,
        M,
        N,
        K,
        x.stride(0),
        x.stride(1),
        weight.stride(1),
        weight.stride(0),
        EVEN_K=K % BLOCK_K == 0,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        num_warps=4,
        num_stages=4,
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

    def forward(self, x, z):
        return case_logsumexp_4096_bfloat16(x, self.linear.weight, self.linear.bias)

"""linear_relu_sum: linear+relu+sum in one Triton kernel."""

import torch
import triton
import triton.language as tl

from linear_relu_sum import Model


@triton.jit
def linear_relu_sum_kernel(
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
    total = tl.zeros((BLOCK_M, 1), dtype=tl.float32)
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
            acc = tl.dot(a, b, acc, input_precision="ieee")
            a_ptrs += BLOCK_K * x_k_stride
            b_ptrs += BLOCK_K * weight_k_stride
        mask = row_mask & col_mask
        bias = tl.load(bias_ptr + cols, mask=col_mask, other=0.0)
        total_2 = acc + bias
        chosen = tl.where(mask, tl.where(total_2 < 0.0, 0.0, total_2), 0.0)
        total += tl.sum(chosen, axis=1, keep_dims=True)
    tl.store(out_ptr + rows, total, mask=row_mask)


def linear_relu_sum(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Linear, ReLU, sum on whole rows of a product."""
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 64, 16
    bias = bias.contiguous()
    out = x.new_empty(x.shape[:-1])
    if out.numel() == 0:
        return out
    M, K = x.shape
    N = weight.shape[0]
    grid = (triton.cdiv(M, BLOCK_M),)
    linear_relu_sum_kernel[grid](
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
        num_warps=8,
        num_stages=3,
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
        return linear_relu_sum(x, self.linear.weight, self.linear.bias)

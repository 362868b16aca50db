"""chain_linear_router: linear+mul+softmax in one Triton kernel."""

import torch
import triton
import triton.language as tl

from chain_linear_router import Model


@triton.jit
def linear_mul_softmax_kernel(
    x_ptr,
    weight_ptr,
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
    cols = tl.arange(0, BLOCK_N)[None, :]
    row_mask = rows < M
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
    product = tl.where(mask, acc * 0.5, -float("inf"))
    row_max = tl.max(product, axis=1, keep_dims=True)
    numerator = tl.exp(product - row_max)
    denominator = tl.sum(numerator, axis=1, keep_dims=True)
    tl.store(out_ptr + rows * N + cols, numerator / denominator, mask=mask)


def linear_mul_softmax(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Linear, mul, softmax on whole rows of a product."""
    BLOCK_M, BLOCK_K = 128, 32
    out = x.new_empty((x.shape[0], weight.shape[0]))
    if out.numel() == 0:
        return out
    M, K = x.shape
    N = weight.shape[0]
    grid = (triton.cdiv(M, BLOCK_M),)
    linear_mul_softmax_kernel[grid](
        x,
        weight,
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
        BLOCK_N=max(triton.next_power_of_2(N), 16),
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
        softmax = linear_mul_softmax(x, self.scores.weight)
        mean = softmax.mean([0])
        mul_1 = mean * mean
        sum_2 = mul_1.sum()
        mul_2 = sum_2 * 64
        return (softmax, mul_2)

"""case_rms_norm: linear+add+rms norm in one Triton kernel."""

import torch
import triton
import triton.language as tl

from case_rms_norm import Model


@triton.jit
def linear_add_rms_norm_kernel(
    x_ptr,
    linear_weight_ptr,
    bias_ptr,
    z_ptr,
    norm_weight_ptr,
    out_ptr,
    M,
    N,
    K,
    x_row_stride,
    x_k_stride,
    linear_weight_k_stride,
    linear_weight_col_stride,
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
    b_ptrs = (
        linear_weight_ptr + ks[:, None] * linear_weight_k_stride + cols * linear_weight_col_stride
    )
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
        b_ptrs += BLOCK_K * linear_weight_k_stride
    mask = row_mask & col_mask
    offsets = rows * N + cols
    bias = tl.load(bias_ptr + cols, mask=col_mask, other=0.0)
    z = tl.load(z_ptr + offsets, mask=mask, other=0.0)
    total = tl.where(mask, acc + bias + z, 0.0)
    norm_weight = tl.load(norm_weight_ptr + cols, mask=col_mask)
    mean_square = tl.sum(total * total, axis=1, keep_dims=True) / N
    rstd = tl.rsqrt(mean_square + 1.1920928955078125e-07)
    tl.store(out_ptr + offsets, total * rstd * norm_weight, mask=mask)


def linear_add_rms_norm(
    x: torch.Tensor,
    linear_weight: torch.Tensor,
    bias: torch.Tensor,
    z: torch.Tensor,
    norm_weight: torch.Tensor,
) -> torch.Tensor:
    """Linear, add, RMS norm on whole rows of a product."""
    BLOCK_M, BLOCK_K = 16, 32
    bias = bias.contiguous()
    z = z.contiguous()
    norm_weight = norm_weight.contiguous()
    out = torch.empty_like(z)
    if out.numel() == 0:
        return out
    M, K = x.shape
    N = linear_weight.shape[0]
    grid = (triton.cdiv(M, BLOCK_M),)
    linear_add_rms_norm_kernel[grid](
        x,
        linear_weight,
        bias,
        z,
        norm_weight,
        out,
        M,
        N,
        K,
        x.stride(0),
        x.stride(1),
        linear_weight.stride(1),
        linear_weight.stride(0),
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

    def forward(self, x, z):
        return linear_add_rms_norm(x, self.linear.weight, self.linear.bias, z, self.norm.weight)

"""A sum in two stages: the launcher allocates one partial sum a block."""

import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, partial_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(partial_ptr + pid, tl.sum(x * x, axis=0))


@triton.jit
def total_kernel(partial_ptr, out_ptr, count, WIDTH: tl.constexpr):
    lanes = tl.arange(0, WIDTH)
    acc = tl.zeros([WIDTH], tl.float32)
    for start in tl.range(0, count, WIDTH, num_stages=2):
        acc += tl.load(partial_ptr + start + lanes, mask=start + lanes < count, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0))


def square_sum(x):
    x = x.contiguous()
    n = x.numel()
    block, width = 256, 32
    count = triton.cdiv(n, block)
    partial = torch.empty(count, device=x.device)
    partial_kernel[(count,)](x, partial, n, BLOCK=block)
    out = torch.empty((), device=x.device)
    total_kernel[(1,)](partial, out, count, WIDTH=width)
    return out


def reference_square_sum(x):
    return (x * x).sum()


def inputs():
    return [torch.randn(10_000)]

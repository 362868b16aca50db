"""Layer norm written as one would in C: element by element."""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, weight_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * n
    out_ptr += row * n
    # mean
    total = 0.0
    for i in range(n):
        total += tl.load(x_ptr + i).to(tl.float32)  # one by one
    mean = total / n
    # variance
    square = 0.0
    for i in range(n):
        x = tl.load(x_ptr + i).to(tl.float32)
        d = x - mean
        square = square + d * d
    scale = 1 / tl.sqrt(square / n + eps)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (x - mean) * scale * w, mask=mask)


def norm(x, weight):
    x = x.contiguous()
    out = torch.empty_like(x)
    rows, n = x.shape
    norm_kernel[(rows,)](x, weight, out, n, 1e-5, BLOCK=128)
    return out


def norm_reference(x, weight):
    return torch.nn.functional.layer_norm(x, weight.shape, weight)


def inputs():
    return [torch.randn(5, 150), torch.rand(150)]

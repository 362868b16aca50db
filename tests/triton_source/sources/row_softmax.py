"""A row in one block, the block as wide as the row."""
import torch
import triton
from triton import language as L


@triton.jit
def softmax_kernel(X, Y, stride, n, BLOCK: L.constexpr):
    row = L.program_id(0)
    cols = L.arange(0, BLOCK)
    x = L.load(X + row * stride + cols, mask=cols < n, other=-float('inf'))
    e = L.exp(x - L.max(x, axis=0))
    L.store(Y + row * n + cols, e / L.sum(e, axis=0), mask=cols < n)


def softmax(x):
    rows, n = x.shape
    y = torch.empty((rows, n), dtype=x.dtype, device=x.device)
    x = x.contiguous()
    BLOCK = triton.next_power_of_2(n)
    softmax_kernel[(rows,)](x, y, x.stride(0), n, BLOCK, num_warps=8)
    return y


def softmax_ref(x):
    return torch.softmax(x, -1)


def inputs():
    return [torch.randn(37, 256)]

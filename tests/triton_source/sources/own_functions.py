"""Reductions and a scan with functions of its own."""

import torch
import triton
import triton.language as tl


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _larger(a, b):
    """The larger one."""
    return tl.where(a > b, a, b)


@triton.jit
def ranges_kernel(x_ptr, sums_ptr, peak_ptr, total_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0)
    running = tl.associative_scan(x, 0, _add)
    tl.store(sums_ptr + row * n_cols + cols, running, mask=inside)
    peak = tl.reduce(tl.where(inside, x, -1e30), 0, _larger)  # of the row
    tl.store(peak_ptr + row, peak)
    tl.store(total_ptr + row, tl.reduce(x, axis=0, combine_fn=_add))


def ranges(x):
    x = x.contiguous()
    rows, n_cols = x.shape
    sums = torch.empty_like(x)
    peak = torch.empty(rows, dtype=x.dtype, device=x.device)
    total = torch.empty_like(peak)
    block = triton.next_power_of_2(n_cols)
    ranges_kernel[(rows,)](x, sums, peak, total, n_cols, BLOCK=block)
    return sums, peak, total


def ranges_reference(x):
    return x.cumsum(-1), x.amax(-1), x.sum(-1)


def inputs():
    return [torch.randn(6, 50)]

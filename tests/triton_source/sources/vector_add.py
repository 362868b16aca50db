"""Element-wise sum, as most introductions to Triton begin."""

import torch

import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add_kernel(x_ptr,  # *Pointer* to the first input.
               y_ptr,  # *Pointer* to the second input.
               output_ptr,  # *Pointer* to the result.
               n_elements,  # Size of the vectors.
               BLOCK_SIZE: tl.constexpr,  # Elements of each program.
               # `constexpr`, so that it can be a shape.
               ):
    pid = tl.program_id(axis=0)  # a 1D grid: axis is 0
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    # Nothing beyond the end.
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    output = x + y
    tl.store(output_ptr + offsets, output, mask=mask)


def add(x: torch.Tensor, y: torch.Tensor):
    output = torch.empty_like(x)
    n_elements = output.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta['BLOCK_SIZE']), )
    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=256)
    return output


def torch_add(x, y):
    return x + y


def inputs():
    return [torch.rand(98432), torch.rand(98432)]


def test_add():
    x, y = inputs()
    assert torch.allclose(add(x, y), x + y)

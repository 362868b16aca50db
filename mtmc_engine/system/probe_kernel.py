"""The smallest kernel that shows whether Triton works here."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def add_one(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n_elements
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) + 1, mask=inside)

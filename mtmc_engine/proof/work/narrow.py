"""bfloat16 and TF32 as a GPU computes them, for Triton's interpreter.

The interpreter keeps bfloat16 as bare 16-bit integers: it multiplies and adds the bits, and cuts
digits off where a GPU rounds to nearest even. It also ignores `input_precision`. Here arithmetic
on bfloat16 happens in float32 and is rounded afterwards, and TF32 products lose the digits that
they lose on a tensor core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder, ReduceScanOpInterface, TensorHandle

_ARITHMETIC = ("binary_op", "unary_op", "ternary_op")
_CASTS = ("cast_impl", "create_fp_to_fp")


def provide() -> None:
    """Mends the interpreter; to be called before the candidate is imported."""
    for name in _ARITHMETIC:
        setattr(InterpreterBuilder, name, _in_float32(getattr(InterpreterBuilder, name)))
    for name in _CASTS:
        setattr(InterpreterBuilder, name, _cast(getattr(InterpreterBuilder, name)))
    InterpreterBuilder.create_fma = _in_float32(InterpreterBuilder.create_fma)
    InterpreterBuilder.create_dot = _dot(InterpreterBuilder.create_dot)
    for kind in ReduceScanOpInterface.__subclasses__():
        kind.apply_impl = _reduction(kind.apply_impl)


def rounded_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """float32 values as bfloat16 bits (uint16), to nearest, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bits (uint16) as float32, exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded_to_tf32(values: np.ndarray) -> np.ndarray:
    """float32 values with the 10 explicit mantissa bits of TF32, to nearest, ties away."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = ((bits + 0x1000) & 0xFFFFE000).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def _is_bfloat16(value: Any) -> bool:
    return isinstance(value, TensorHandle) and value.dtype.scalar == tl.bfloat16


def _widened(value: Any) -> Any:
    return TensorHandle(from_bfloat16(value.data), tl.float32) if _is_bfloat16(value) else value


def _narrowed(handle: Any) -> Any:
    """A float32 result as bfloat16; a truth value as it is."""
    if handle.data.dtype != np.float32:
        return handle
    return TensorHandle(rounded_to_bfloat16(handle.data), tl.bfloat16)


def _in_float32(original: Callable[..., Any]) -> Callable[..., Any]:
    def operation(builder: Any, *arguments: Any) -> Any:
        picks = arguments[-1] is np.where  # moves bits, computes nothing
        if picks or not any(_is_bfloat16(value) for value in arguments):
            return original(builder, *arguments)
        return _narrowed(original(builder, *(_widened(value) for value in arguments)))

    return operation


def _cast(original: Callable[..., Any]) -> Callable[..., Any]:
    def cast(builder: Any, source: Any, target: Any, *rest: Any) -> Any:
        kind = target.scalar
        if _is_bfloat16(source):
            source = _widened(source)
            if kind == tl.float32:
                return source
        if kind == tl.bfloat16:
            return TensorHandle(rounded_to_bfloat16(source.data.astype(np.float32)), tl.bfloat16)
        return original(builder, source, target, *rest)

    return cast


def _dot(original: Callable[..., Any]) -> Callable[..., Any]:
    def dot(builder: Any, a: Any, b: Any, acc: Any, input_precision: Any, *rest: Any) -> Any:
        a, b = _widened(a), _widened(b)
        if input_precision == ir.INPUT_PRECISION.TF32 and a.data.dtype == np.float32:
            a = TensorHandle(rounded_to_tf32(a.data), tl.float32)
            b = TensorHandle(rounded_to_tf32(b.data), tl.float32)
        return original(builder, a, b, acc, input_precision, *rest)

    return dot


def _reduction(original: Callable[..., Any]) -> Callable[..., Any]:
    def apply_impl(self: Any, values: Any) -> Any:
        if not any(value.dtype.scalar == tl.bfloat16 for value in values):
            return original(self, values)
        wide = tuple(self.to_tensor(_widened(v.handle).data, _wide_type(v)) for v in values)
        found = original(self, wide)
        several = isinstance(found, list | tuple)
        narrow = [_narrow_tensor(value) for value in (found if several else (found,))]
        return narrow if several else narrow[0]

    return apply_impl


def _wide_type(value: Any) -> Any:
    return tl.float32 if value.dtype.scalar == tl.bfloat16 else value.dtype.scalar


def _narrow_tensor(value: Any) -> Any:
    if value.dtype.scalar != tl.float32:
        return value
    kind = tl.block_type(tl.bfloat16, list(value.shape)) if value.shape else tl.bfloat16
    return tl.core.tensor(_narrowed(value.handle), kind)

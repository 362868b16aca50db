"""libdevice for Triton's interpreter, which has none: the same functions through torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.extra import libdevice as generic
from triton.language.extra.cuda import libdevice as cuda
from triton.runtime.interpreter import TensorHandle

_SAME_NAME = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos"),
    *("cosh", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "lgamma"),
    *("log", "log10", "log1p", "log2", "nextafter", "pow", "rsqrt", "sin", "sinh", "sqrt", "tan"),
    *("tanh", "trunc"),
)
_OTHER_NAMES: dict[str, Callable[..., torch.Tensor]] = {
    "abs": torch.abs,
    "fabs": torch.abs,
    "cbrt": lambda x: torch.sign(x) * torch.abs(x).pow(1 / 3),
    "div_rn": torch.div,
    "exp10": lambda x: torch.pow(10.0, x),
    "fast_dividef": torch.div,
    "fast_expf": torch.exp,
    "fast_logf": torch.log,
    "fast_powf": torch.pow,
    "fast_sinf": torch.sin,
    "fast_cosf": torch.cos,
    "fast_tanf": torch.tan,
    "fdim": lambda x, y: torch.clamp(x - y, min=0),
    "fma": lambda x, y, z: x * y + z,
    "max": torch.maximum,
    "min": torch.minimum,
    "nearbyint": torch.round,
    "normcdf": torch.special.ndtr,
    "rcp_rn": torch.reciprocal,
    "rint": torch.round,
    "sqrt_rn": torch.sqrt,
    "tgamma": lambda x: torch.exp(torch.lgamma(x)),
}
_TESTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "isfinited": torch.isfinite,
    "finitef": torch.isfinite,
    "signbit": torch.signbit,
}


def provide() -> None:
    """Fills Triton's libdevice modules; to be called before the candidate is imported."""
    floats = {name: getattr(torch, name) for name in _SAME_NAME} | _OTHER_NAMES
    for name, function in floats.items():
        _set(name, _on_tensors(function, None))
    for name, test in _TESTS.items():
        _set(name, _on_tensors(test, tl.int32))


def _set(name: str, function: Callable[..., Any]) -> None:
    for module in (generic, cuda):
        if hasattr(module, name):
            setattr(module, name, function)


def _on_tensors(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """The function on Triton's tensors: computed in float64, rounded to the argument's type.

    dtype: of the result; None for that of the first tensor argument.
    """

    def call(*args: Any, _semantic: Any = None) -> Any:
        first = next(arg for arg in args if isinstance(arg, tl.core.tensor))
        scalar = dtype or first.dtype
        values = [torch.from_numpy(np.asarray(_data(arg), dtype=np.float64)) for arg in args]
        found = np.asarray(function(*values).numpy())
        found = found.astype(np.int32 if dtype else first.handle.data.dtype)
        kind = tl.block_type(scalar, list(found.shape)) if found.shape else scalar
        return tl.core.tensor(TensorHandle(found, scalar), kind)

    return call


def _data(value: Any) -> Any:
    if isinstance(value, tl.core.tensor):
        return value.handle.data
    return getattr(value, "value", value)

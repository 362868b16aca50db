"""How far a result may be from the truth.

The truth is the reference evaluated in float64. An output passes when its error, in the maximum
norm and in root mean square alike, is at most

    max(FACTOR * reference error, condition error, floor)

- *reference error*: what the reference's own result, in its own dtype, is away from the truth.
- *condition error*: how far the truth moves when each floating-point input and parameter is
  moved by four times the rounding of the arithmetic (relative size 4 * 2^-24 for float32,
  4 * 2^-11 where TF32 is allowed), and each operator's result by 4 * 2^-24 of itself. An
  honest algorithm that sums in another order gives the exact result of slightly perturbed inputs
  (backward stability, N. J. Higham, Accuracy and Stability of Numerical Algorithms, 1.5), so
  this is what it may cost, also where the reference's own error is small by luck. Results are
  moved as well, since a norm over rows that are constant by then shows nothing but rounding.
- *floor*: 2 ulp of the output's dtype plus 16 ulp of the arithmetic, both of the output's own
  size in that norm: float32 2.1e-6, bfloat16 1.6e-2, float16 2.0e-3, float64 4.0e-15 of it.
  Sixteen, since the hardware's exp2, rsqrt and division are off by up to 2 ulp each and are
  chained.

All norms are relative to the output itself, so that zeros never pass for a small result:
softmax over 393216 columns has values near 4e-6, and its bound is near 1e-11. TF32 in place of
float32 for a matrix product is off by about 3e-4 of the output's size and fp16 by as much: over
a hundred times the floor.
"""

from __future__ import annotations

from msgspec import Struct

FACTOR = 4.0
FLOOR_ULPS_OUT = 2.0
FLOOR_ULPS_ARITHMETIC = 16.0

# Spacing of floating-point numbers just above one.
EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}

# TF32 keeps ten bits of a factor's mantissa. Where it is allowed, inputs are perturbed by as much.
TF32_EPSILON = 2.0**-10


class Norms(Struct, frozen=True):
    """Maximum and root mean square of an error or of values, over the finite elements."""

    largest: float
    rms: float


class Bound(Struct, frozen=True):
    """What an output may be off by, absolute, with where it comes from.

    scale: of the truth. reference: the reference's own error. condition: see the module.
    """

    largest: float
    rms: float
    scale: Norms
    reference: Norms
    condition: Norms


def arithmetic(dtype: str) -> str:
    """Precision that honest kernels compute in: float32 for narrower types."""
    return dtype if dtype in ("float64", "complex128") else "float32"


def floor(dtype: str) -> float:
    """The floor relative to the output's size."""
    out = FLOOR_ULPS_OUT * EPSILON[dtype]
    return out + FLOOR_ULPS_ARITHMETIC * EPSILON[arithmetic(dtype)]


def bound(dtype: str, scale: Norms, reference: Norms, condition: Norms) -> Bound:
    """The bound of one output of dtype `dtype` (a key of EPSILON)."""
    least = floor(dtype)

    def one(size: float, own: float, conditioning: float) -> float:
        return max(FACTOR * own, conditioning, least * size)

    return Bound(
        one(scale.largest, reference.largest, condition.largest),
        one(scale.rms, reference.rms, condition.rms),
        scale,
        reference,
        condition,
    )

"""Device functions that generated kernels share: accurate forms that Triton lacks."""

from __future__ import annotations

# Coefficients of tanh near zero: S. L. Moshier, Cephes, tanhf.c.
HELPERS = {
    "multiply": """\
@triton.jit
def multiply(a, b):
    return a * b""",
    "tanh": """\
@triton.jit
def tanh(x):
    # 1 - 2 / (e^2x + 1) loses the digits of a small x; an odd polynomial keeps them.
    square = x * x
    slope = -5.70498872745e-3 * square + 2.06390887954e-2
    slope = slope * square - 5.37397155531e-2
    slope = slope * square + 1.33314422036e-1
    slope = slope * square - 3.33332819422e-1
    near = slope * square * x + x
    far = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.625, near, tl.where(x < 0.0, -far, far))""",
    "round_half_even": """\
@triton.jit
def round_half_even(x):
    # Adding 2^23 leaves no bits for a fraction: the sum is rounded to an integer.
    size = tl.abs(x)
    near = (size + 8388608.0) - 8388608.0
    return tl.where(size < 8388608.0, tl.where(x < 0.0, -near, near), x)""",
    "log1p": """\
@triton.jit
def log1p(x):
    # The rounding error of 1 + x cancels in the quotient (Kahan).
    shifted = 1.0 + x
    corrected = tl.log(shifted) * (x / (shifted - 1.0))
    return tl.where(shifted == 1.0, x, tl.where(shifted == float("inf"), shifted, corrected))""",
    "expm1": """\
@triton.jit
def expm1(x):
    # Near zero e^x - 1 cancels; five terms of the series are exact to float32 there.
    series = x * (1.0 / 720.0) + 1.0 / 120.0
    series = series * x + 1.0 / 24.0
    series = series * x + 1.0 / 6.0
    series = series * x + 0.5
    series = series * x * x + x
    return tl.where(tl.abs(x) < 0.25, series, tl.exp(x) - 1.0)""",
}

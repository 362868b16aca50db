"""The bounds of values: what they let through and what not."""

import pytest

from mtmc_engine.proof.tolerance import EPSILON, Norms, bound, floor

NONE = Norms(0.0, 0.0)


@pytest.mark.parametrize("dtype", sorted(EPSILON))
def test_exact_operators_have_a_floor_of_a_few_ulp(dtype):
    limits = bound(dtype, Norms(10.0, 2.0), NONE, NONE)
    assert limits.largest == pytest.approx(10.0 * floor(dtype))
    assert limits.rms == pytest.approx(2.0 * floor(dtype))


@pytest.mark.parametrize("scale", [1e-30, 4e-6, 1.0, 1e20])
def test_zeros_are_never_within_the_bound(scale):
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        assert bound(dtype, Norms(scale, scale / 3), NONE, NONE).largest < 0.1 * scale


def test_the_reference_own_error_widens_the_bound():
    wide = bound("float32", Norms(1.0, 1.0), Norms(1e-3, 1e-4), NONE)
    assert wide.largest == pytest.approx(4e-3)
    assert wide.rms == pytest.approx(4e-4)


def test_tf32_is_far_outside_the_floor_of_float32():
    assert floor("float32") * 50 < 3e-4

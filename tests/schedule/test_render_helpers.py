"""The device functions that Triton lacks, in float32 against float64, over all magnitudes."""

from types import SimpleNamespace

import numpy as np
import pytest

from mtmc_engine.schedule.render.helpers import HELPERS

TL = SimpleNamespace(exp=np.exp, log=np.log, abs=np.abs, where=np.where)
MAGNITUDES = np.logspace(-30, 1.9, 20001).astype(np.float32)
ULP = 2.0**-23


def helper(name):
    scope = {"tl": TL, "triton": SimpleNamespace(jit=lambda function: function), "float": float}
    exec(HELPERS[name], scope)
    return scope[name]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "exact", "x"),
    [
        ("tanh", np.tanh, np.concatenate([MAGNITUDES, -MAGNITUDES])),
        ("log1p", np.log1p, np.concatenate([MAGNITUDES, -MAGNITUDES[MAGNITUDES < 0.9]])),
        ("expm1", np.expm1, np.concatenate([MAGNITUDES, -MAGNITUDES])),
    ],
)
def test_helper_is_accurate_to_a_few_ulp(name, exact, x):
    truth = exact(x.astype(np.float64))
    error = np.abs(helper(name)(x).astype(np.float64) - truth)
    assert float((error / np.abs(truth)).max()) < 5 * ULP


def test_rounding_is_to_even():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 4194304.5, 8388609.0, -3e9], np.float32)
    np.testing.assert_array_equal(helper("round_half_even")(x), np.round(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(HELPERS.keys() - {"multiply"}))
def test_helper_at_the_ends(name):
    ends = np.array([0.0, np.inf, np.nan], dtype=np.float32)
    exact = {"round_half_even": np.round}.get(name) or getattr(np, name)
    np.testing.assert_array_equal(helper(name)(ends), exact(ends))

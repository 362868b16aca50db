"""Comparing outputs, drawing inputs, and finding weak tasks: tensors in, findings out."""

import math

import pytest
import torch

from mtmc_engine.proof.tolerance import Norms, bound
from mtmc_engine.proof.work.build import varied_initialisers
from mtmc_engine.proof.work.compare import compare_exact, compare_float, compare_index, same_bits
from mtmc_engine.proof.work.moved import Moved, Nudge
from mtmc_engine.proof.work.tensors import distributed, laid_out
from mtmc_engine.proof.work.widen import Jitter, in_float64

NAN = float("nan")
TIGHT = bound("float32", Norms(1.0, 1.0), Norms(0.0, 0.0), Norms(0.0, 0.0))


def compared(actual, result, ignore_nan=False):
    true = torch.tensor(result, dtype=torch.float64)
    given = torch.tensor(actual), torch.tensor(result)
    return compare_float(*given, true, TIGHT, ignore_nan).verdict


@pytest.mark.parametrize(
    ("actual", "result", "verdict"),
    [
        ([1.0, NAN], [1.0, NAN], ""),
        ([1.0, 0.0], [1.0, NAN], "NONFINITE"),
        ([NAN, 1.0], [1.0, 1.0], "NONFINITE"),
        ([1.0, math.inf], [1.0, math.inf], ""),
        ([1.0, -math.inf], [1.0, math.inf], "NONFINITE"),
        ([1.0, 1.0001], [1.0, 1.0], "NUMERIC"),
        ([1.0, 1.0 + 2**-23], [1.0, 1.0], ""),
    ],
)
def test_floats(actual, result, verdict):
    assert compared(actual, result) == verdict


def test_nan_of_the_reference_may_be_ignored():
    assert compared([1.0, 0.0], [1.0, NAN], ignore_nan=True) == ""
    assert compared([NAN, 1.0], [1.0, 1.0], ignore_nan=True) == "NONFINITE"


def test_integers_may_fall_on_either_side_of_a_threshold_only():
    actual, expected = torch.tensor([3, 4]), torch.tensor([3, 5])
    assert compare_exact(actual, expected).verdict == "NUMERIC"
    assert compare_exact(actual, expected, [torch.tensor([3, 4])]).verdict == ""
    assert compare_exact(actual, expected, [torch.tensor([4, 5])]).verdict == "NUMERIC"


def test_positions_that_point_to_equal_values():
    source = torch.tensor([[1.0, 5.0, 5.0]])
    assert compare_index(torch.tensor([2]), torch.tensor([1]), source, -1).verdict == ""
    assert compare_index(torch.tensor([0]), torch.tensor([1]), source, -1).verdict == "NUMERIC"
    assert compare_index(torch.tensor([3]), torch.tensor([1]), source, -1).verdict == "NUMERIC"


def test_a_position_named_twice():
    source = torch.tensor([5.0, 5.0, 1.0])
    assert compare_index(torch.tensor([1, 1]), torch.tensor([0, 1]), source, -1).verdict


def test_same_bits_with_nan():
    assert same_bits(torch.tensor([1.0, NAN]), torch.tensor([1.0, NAN]))
    assert not same_bits(torch.tensor([1.0, NAN]), torch.tensor([1.0, 2.0]))


def test_a_mask_of_two_values_stays():
    mask = torch.tensor([0.0, 1.0, 1.0])
    assert torch.equal(distributed(mask, "normal", 0), mask)


def test_constants_are_varied_about_their_value():
    ones = distributed(torch.ones(50), "normal", 0)
    assert (ones > 0).all()
    assert len(ones.unique()) > 10


@pytest.mark.parametrize(("dtype", "least"), [(torch.float16, 3e4), (torch.bfloat16, 1e12)])
def test_near_the_end_is_finite(dtype, least):
    found = distributed(torch.randn(8, 8).to(dtype), "near the range's end", 0)
    assert torch.isfinite(found).all()
    assert found.abs().max() >= least


def test_nan_leaves_rows_without_it():
    found = distributed(torch.randn(6, 5), "with NaN", 0)
    assert found.isnan().any(1).tolist() == [True, False, False, False, False, True]


def test_nested_arguments_are_laid_out_alike():
    given = [[torch.randn(3, 4)], {"gate": torch.randn(3, 4)}, 2]
    (one,), named, number = laid_out(given, "sliced")
    assert one.stride() == named["gate"].stride() == (7, 1)
    assert torch.equal(one, given[0][0])
    assert number == 2


def test_initialisers_vary_alike_whatever_the_order():
    with varied_initialisers():
        torch.manual_seed(1)
        first = torch.nn.LayerNorm(16)
        weights = torch.nn.Linear(4, 4).weight
        by_hand = torch.nn.Parameter(torch.ones(16))
    torch.manual_seed(1)
    plain = torch.nn.LayerNorm(16)
    assert torch.equal(first.weight, by_hand)
    assert len(first.weight.unique()) > 4
    assert (first.bias != 0).any()
    assert torch.equal(weights, torch.nn.Linear(4, 4).weight)
    assert torch.equal(plain.weight, torch.ones(16))


def test_rounding_of_results_shows_where_rows_are_constant():
    def normed(x):
        return torch.nn.functional.layer_norm(torch.softmax(x, -1) * 3, x.shape[-1:])

    x = torch.zeros(2, 45, dtype=torch.float64)
    with in_float64():
        assert normed(x).abs().max() < 1e-12
    with in_float64(Jitter(2**-24, torch.Generator().manual_seed(0))):
        assert normed(x).abs().max() > 1e-8


def test_the_mean_inside_a_norm_is_rounded_too():
    x = torch.full((3, 45), 1.7, dtype=torch.float64)
    with in_float64(Jitter(2**-24, torch.Generator().manual_seed(0))):
        found = torch.nn.functional.layer_norm(x, x.shape[-1:])
    assert found.sum(-1).abs().max() > 1e-4


def test_results_in_place_and_views_are_left_alone():
    x = torch.zeros(4, 5, dtype=torch.float64)
    with in_float64(Jitter(0.5, torch.Generator().manual_seed(0))):
        x[:, 0].add_(1.0)
        x.view(-1)[1] = 7.0
    assert x[0, 0] == 1.0
    assert x[0, 1] == 7.0


def test_integers_are_looked_at_on_both_sides():
    x = torch.tensor([0.5, 2.0])
    moved = Moved({"": (x.double() > 0.5)})
    for nudge in moved.nudges(0, tf32=False):
        moved.note(nudge, [("", nudge.of(x) > 0.5)])
    low, high = moved.ranges[""]
    assert low.tolist() == [False, True]
    assert high.tolist() == [True, True]
    assert isinstance(next(iter(moved.nudges(0, tf32=False))), Nudge)

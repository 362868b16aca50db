"""Inputs that promise something keep it when they are drawn anew."""

import pytest
import torch

from mtmc_engine.proof.work.pattern import Pattern, pattern_of


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        (torch.randn(9, 9).triu(), Pattern(upper=True)),
        (torch.randn(2, 9, 9).tril(), Pattern(lower=True)),
        (torch.randn(5).diag(), Pattern(upper=True, lower=True)),
        (torch.randn(9, 9) + torch.randn(9, 9).T, Pattern()),
        (torch.arange(20), Pattern(ascending=True)),
        (torch.linspace(0, 1, 30).expand(4, 30), Pattern(ascending=True)),
        (torch.randn(40), Pattern()),
        (torch.ones(6, 6), Pattern()),
        (torch.zeros(6, 6), Pattern()),
        (torch.ones(40), Pattern()),
        (torch.randn(2, 2).triu(), Pattern()),
        (3, Pattern()),
    ],
)
def test_found(value, pattern):
    assert pattern_of(value) == pattern


def test_symmetry_is_kept():
    half = torch.randn(7, 7)
    pattern = pattern_of(half + half.T)
    assert pattern.symmetric
    again = pattern.restored(torch.randn(5, 5))
    assert torch.equal(again, again.T)
    assert pattern.restored(torch.randn(5, 4)).shape == (5, 4)


def test_triangles_and_order_are_kept():
    assert not pattern_of(torch.randn(9, 9).triu()).restored(torch.randn(4, 6)).tril(-1).any()
    found = pattern_of(torch.arange(20)).restored(torch.tensor([3, 1, 2]))
    assert found.tolist() == [1, 2, 3]

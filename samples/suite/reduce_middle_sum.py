"""The sum over a middle dimension, as when time steps of a sequence are pooled."""

import torch

BATCH = 128
STEPS = 1024
WIDTH = 768


def middle_sum(x: torch.Tensor) -> torch.Tensor:
    return x.sum(dim=1)


def inputs():
    return [torch.randn(BATCH, STEPS, WIDTH)]

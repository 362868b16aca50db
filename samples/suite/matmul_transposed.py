"""A product with its first factor stored by columns, as a weight's gradient is computed."""

import torch

TOKENS = 8192
INPUTS = 3072
OUTPUTS = 2048


def transposed(activation: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    return gradient.t() @ activation


def inputs():
    return [torch.randn(TOKENS, INPUTS), torch.randn(TOKENS, OUTPUTS)]

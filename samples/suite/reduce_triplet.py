"""A margin between the distances to a wrong and to a right example."""

import torch

TRIPLES = 32768
WIDTH = 1024
MARGIN = 0.5


def triplet(anchor: torch.Tensor, right: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    near = torch.sqrt(((anchor - right) ** 2).sum(dim=-1) + 1e-6)
    far = torch.sqrt(((anchor - wrong) ** 2).sum(dim=-1) + 1e-6)
    return torch.relu(near - far + MARGIN).mean()


def inputs():
    return [torch.randn(TRIPLES, WIDTH) for _ in range(3)]

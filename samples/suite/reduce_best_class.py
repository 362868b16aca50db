"""The best score of each row and where it stands."""

import torch

ROWS = 65536
CLASSES = 1500


def best_class(scores: torch.Tensor):
    best = torch.max(scores, dim=-1)
    return best.values, best.indices


def inputs():
    return [torch.randn(ROWS, CLASSES)]

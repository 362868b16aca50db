"""One less the cosine of pairs of embeddings, averaged over the pairs."""

import torch
import torch.nn.functional as F

PAIRS = 32768
WIDTH = 1536


def cosine(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return (1.0 - F.cosine_similarity(first, second, dim=-1)).mean()


def inputs():
    return [torch.randn(PAIRS, WIDTH), torch.randn(PAIRS, WIDTH)]

"""Scaled attention scores, padding masked out, softmax over the keys."""

import torch

BATCH = 8
HEADS = 16
QUERIES = 1024
KEYS = 768


def masked_softmax(scores: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
    masked = (scores * 0.125).masked_fill(padding, float("-inf"))
    return torch.softmax(masked, dim=-1)


def inputs():
    padding = torch.rand(BATCH, 1, 1, KEYS) > 0.8
    padding[..., 0] = False
    return [torch.randn(BATCH, HEADS, QUERIES, KEYS), padding]

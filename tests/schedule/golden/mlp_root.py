"""mlp: every operator calls the library."""

import torch

from mlp import Model


class ModelNew(Model):
    """Model with the reference's own operators."""

    @classmethod
    def from_reference(cls, model):
        """A ModelNew that shares the parameters and buffers of `model`."""
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, x):
        linear = torch.nn.functional.linear(x, self.expand.weight, self.expand.bias)
        gelu = torch.nn.functional.gelu(linear)
        linear_1 = torch.nn.functional.linear(gelu, self.contract.weight, self.contract.bias)
        return x + linear_1

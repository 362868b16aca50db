"""One step of Adam over a flat parameter: four tensors in, three out."""

import torch

PARAMETERS = 33_554_432
RATE = 1e-3
BETA1 = 0.9
BETA2 = 0.95
EPSILON = 1e-8


def adam(parameter, gradient, mean, square):
    mean = BETA1 * mean + (1 - BETA1) * gradient
    square = BETA2 * square + (1 - BETA2) * gradient * gradient
    step = mean / (torch.sqrt(square) + EPSILON)
    return parameter - RATE * (step + 0.01 * parameter), mean, square


def inputs():
    three = [torch.randn(PARAMETERS) for _ in range(3)]
    return [*three, torch.rand(PARAMETERS)]

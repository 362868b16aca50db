"""Files that name "cuda" open on machines without a GPU, and draw the same values everywhere."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class OnCpu(TorchFunctionMode):  # type: ignore[misc]
    """Within it, tensors that would be made on a GPU or moved there are made on the CPU."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.Tensor.cuda:
            return args[0].cpu()
        named = {name: _on_cpu(value) for name, value in (kwargs or {}).items()}
        return function(*map(_on_cpu, args), **named)


def _on_cpu(value: Any) -> Any:
    """A device is named by a torch.device or by text such as "cuda:0"."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value

"""Where there is no GPU, code that names "cuda" means the device that is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_TO_DEVICE = {torch.Tensor.cuda, torch.nn.Module.cuda}


class CudaIsHere(TorchFunctionMode):  # type: ignore[misc]
    """Within it, a request for a CUDA device gets `device`."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = torch.device(device)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in _TO_DEVICE:
            return args[0].to(self.device)
        return func(
            *(self._here(value) for value in args),
            **{name: self._here(value) for name, value in (kwargs or {}).items()},
        )

    def _here(self, value: Any) -> Any:
        names_cuda = isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))
        if names_cuda or (isinstance(value, torch.device) and value.type == "cuda"):
            return self.device
        return value


@contextmanager
def cuda_is(device: str) -> Iterator[None]:
    """Candidate code in here finds its tensors on "the GPU"; on a real one nothing changes."""
    if device.startswith("cuda"):
        yield
        return
    with CudaIsHere(device):
        torch.Tensor.is_cuda = property(lambda tensor: True)
        try:
            yield
        finally:
            del torch.Tensor.is_cuda

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
        if func is torch.Tensor.get_device:
            return 0
        if func is torch.device:
            return func(*args, **(kwargs or {}))
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
    """Candidate code in here finds its tensors on "the GPU"; on a real one nothing changes.

    Tensors without memory say truly where they are: torch's own code for them asks.
    """
    if device.startswith("cuda"):
        yield
        return
    shown = {**_ON_TENSORS, **({} if device == "meta" else {"device": property(_shown)})}
    available = torch.cuda.is_available
    with CudaIsHere(device):
        torch.cuda.is_available = _yes
        for name, value in shown.items():
            setattr(torch.Tensor, name, value)
        try:
            yield
        finally:
            torch.cuda.is_available = available
            for name in shown:
                delattr(torch.Tensor, name)


def _yes() -> bool:
    return True


# Inherited attributes of tensors that are hidden.
_ON_TENSORS = {
    "is_cuda": property(lambda tensor: True),
    "record_stream": lambda tensor, stream: None,
}


def _shown(tensor: torch.Tensor) -> torch.device:
    where = torch._C.TensorBase.device.__get__(tensor)
    return torch.device("cuda", 0) if where.type == "cpu" else where

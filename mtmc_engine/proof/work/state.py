"""Global state that a candidate may change, noted before its import and compared afterwards."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable
from typing import Any

import torch


def _tf32(place: Any) -> Any:
    """The switch, by torch's newer interface where the older one was not used."""
    try:
        return place.allow_tf32
    except RuntimeError:  # the two interfaces were mixed
        return place.fp32_precision


_TF32_PLACES: dict[str, Any] = {
    "TF32 for matrix products": torch.backends.cuda.matmul,
    "TF32 for convolutions": torch.backends.cudnn,
}
_SWITCHES: dict[str, Callable[[], Any]] = {
    "torch's default dtype": torch.get_default_dtype,
    "TF32 for matrix products": lambda: _tf32(torch.backends.cuda.matmul),
    "TF32 for convolutions": lambda: _tf32(torch.backends.cudnn),
    "float32 matmul precision": torch.get_float32_matmul_precision,
    "cudnn.enabled": lambda: torch.backends.cudnn.enabled,
    "cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
    "cudnn.deterministic": lambda: torch.backends.cudnn.deterministic,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "grad mode": torch.is_grad_enabled,
    "number of threads": torch.get_num_threads,
}
_FUNCTIONS: dict[str, tuple[Any, str]] = {
    "torch.allclose": (torch, "allclose"),
    "torch.equal": (torch, "equal"),
    "torch.isclose": (torch, "isclose"),
    "torch.save": (torch, "save"),
    "torch.load": (torch, "load"),
    "torch.testing.assert_close": (torch.testing, "assert_close"),
    "torch.Tensor.copy_": (torch.Tensor, "copy_"),
    "torch.Tensor.clone": (torch.Tensor, "clone"),
    "torch.Tensor.cpu": (torch.Tensor, "cpu"),
    "torch.cuda.synchronize": (torch.cuda, "synchronize"),
    "torch.cuda.Event": (torch.cuda, "Event"),
    "torch.cuda.Event.elapsed_time": (torch.cuda.Event, "elapsed_time"),
    "torch.cuda.Event.record": (torch.cuda.Event, "record"),
    "time.time": (time, "time"),
    "time.perf_counter": (time, "perf_counter"),
    "time.perf_counter_ns": (time, "perf_counter_ns"),
    "time.monotonic": (time, "monotonic"),
    "builtins.open": (builtins, "open"),
    "builtins.print": (builtins, "print"),
}


class GlobalState:
    """A note of switches and functions at one moment."""

    def __init__(self) -> None:
        self.switches = {name: read() for name, read in _SWITCHES.items()}
        self.functions = {name: getattr(*place) for name, place in _FUNCTIONS.items()}

    def changes(self) -> tuple[str, ...]:
        """What is different now, one phrase each."""
        found = []
        for name, before in self.switches.items():
            now = _SWITCHES[name]()
            if now != before:
                found.append(f"{name} changed from {before} to {now}")
        for name, before in self.functions.items():
            if getattr(*_FUNCTIONS[name]) is not before:
                found.append(f"{name} was replaced")
        return tuple(found)

    def restore(self) -> None:
        """Puts replaced functions, the default dtype and the TF32 switches back."""
        for name, (place, attribute) in _FUNCTIONS.items():
            if getattr(place, attribute) is not self.functions[name]:
                setattr(place, attribute, self.functions[name])
        torch.set_default_dtype(self.switches["torch's default dtype"])
        for name, place in _TF32_PLACES.items():
            if _tf32(place) != self.switches[name]:
                place.allow_tf32 = self.switches[name] in (True, "tf32")

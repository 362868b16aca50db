"""Global state that a candidate may change, noted before its import and compared afterwards."""

from __future__ import annotations

import builtins
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_Read = Callable[[], Any]
_Write = Callable[[Any], None]


def _tf32(place: Any) -> Any:
    """The switch, by torch's newer interface where the older one was not used."""
    try:
        return place.allow_tf32
    except RuntimeError:  # the two interfaces were mixed
        return place.fp32_precision


def _set_tf32(place: Any) -> _Write:
    def write(value: Any) -> None:
        place.allow_tf32 = value in (True, "tf32")

    return write


def _attribute(place: Any, name: str) -> tuple[_Read, _Write]:
    return (lambda: getattr(place, name)), (lambda value: setattr(place, name, value))


_matmul, _cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
_SWITCHES: dict[str, tuple[_Read, _Write]] = {
    "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "TF32 for matrix products": (lambda: _tf32(_matmul), _set_tf32(_matmul)),
    "TF32 for convolutions": (lambda: _tf32(_cudnn), _set_tf32(_cudnn)),
    "float32 matmul precision": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    "reduced precision in bf16 sums": _attribute(_matmul, "allow_bf16_reduced_precision_reduction"),
    "reduced precision in fp16 sums": _attribute(_matmul, "allow_fp16_reduced_precision_reduction"),
    "cudnn.enabled": _attribute(_cudnn, "enabled"),
    "cudnn.benchmark": _attribute(_cudnn, "benchmark"),
    "cudnn.deterministic": _attribute(_cudnn, "deterministic"),
    "deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "number of threads": (torch.get_num_threads, torch.set_num_threads),
    "garbage collection": (gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
}
_TORCH = str(Path(torch.__file__).parent)


def _functions() -> dict[str, tuple[Any, str]]:
    """Functions that a measurement could be fooled by, with where they are found now."""
    return {
        "torch.allclose": (torch, "allclose"),
        "torch.equal": (torch, "equal"),
        "torch.isclose": (torch, "isclose"),
        "torch.empty": (torch, "empty"),
        "torch.save": (torch, "save"),
        "torch.load": (torch, "load"),
        "torch.testing.assert_close": (torch.testing, "assert_close"),
        "torch.Tensor.copy_": (torch.Tensor, "copy_"),
        "torch.Tensor.clone": (torch.Tensor, "clone"),
        "torch.Tensor.cpu": (torch.Tensor, "cpu"),
        "torch.Tensor.to": (torch.Tensor, "to"),
        "torch.Tensor.fill_": (torch.Tensor, "fill_"),
        "torch.Tensor.data_ptr": (torch.Tensor, "data_ptr"),
        "torch.cuda.synchronize": (torch.cuda, "synchronize"),
        "torch.cuda.current_stream": (torch.cuda, "current_stream"),
        "torch.cuda.Event": (torch.cuda, "Event"),
        "torch.cuda.Event.elapsed_time": (torch.cuda.Event, "elapsed_time"),
        "torch.cuda.Event.record": (torch.cuda.Event, "record"),
        "torch.cuda.Event.synchronize": (torch.cuda.Event, "synchronize"),
        "torch.cuda.Stream.synchronize": (torch.cuda.Stream, "synchronize"),
        "torch.cuda.CUDAGraph": (torch.cuda, "CUDAGraph"),
        "torch.cuda.CUDAGraph.replay": (torch.cuda.CUDAGraph, "replay"),
        "torch.profiler.profile": (torch.profiler, "profile"),
        "torch.manual_seed": (torch, "manual_seed"),
        "time.time": (time, "time"),
        "time.time_ns": (time, "time_ns"),
        "time.perf_counter": (time, "perf_counter"),
        "time.perf_counter_ns": (time, "perf_counter_ns"),
        "time.monotonic": (time, "monotonic"),
        "time.monotonic_ns": (time, "monotonic_ns"),
        "time.process_time": (time, "process_time"),
        "builtins.open": (builtins, "open"),
        "builtins.print": (builtins, "print"),
        "builtins.isinstance": (builtins, "isinstance"),
    }


_ABSENT = object()


def _current(place: Any, name: str) -> Any:
    """As it is stored, so that bound methods compare equal to themselves."""
    return vars(place).get(name, _ABSENT)


def _is_of_torch(value: Any) -> bool:
    """Whether PyTorch itself put a function of its own there, as its compiler does on import."""
    code = getattr(value, "__code__", None)
    return code is not None and str(code.co_filename).startswith(_TORCH)


def _read(name: str) -> Any:
    """A switch; torch refuses to read some once its two interfaces for them were mixed."""
    try:
        return _SWITCHES[name][0]()
    except RuntimeError:
        return "unreadable"


class GlobalState:
    """A note of switches and functions at one moment."""

    def __init__(self) -> None:
        self.switches = {name: _read(name) for name in _SWITCHES}
        self._places = _functions()
        self.functions = {name: _current(*place) for name, place in self._places.items()}

    def changes(self) -> tuple[str, ...]:
        """What is different now, one phrase each."""
        found = []
        for name, before in self.switches.items():
            now = _read(name)
            if now != before:
                found.append(f"{name} changed from {before} to {now}")
        for name, before in self.functions.items():
            now = _current(*self._places[name])
            if now is not before and not _is_of_torch(now):
                found.append(f"{name} was replaced")
        return tuple(found)

    def restore(self) -> None:
        """Puts every switch and every function back."""
        for name, before in self.functions.items():
            place, attribute = self._places[name]
            if _current(place, attribute) is before:
                continue
            if before is _ABSENT:  # inherited: the replacement hides it
                delattr(place, attribute)
            else:
                setattr(place, attribute, before)
        for name, before in self.switches.items():
            if _read(name) != before:
                _SWITCHES[name][1](before)

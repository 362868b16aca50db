"""Device clocks: how a stand marks moments on its device, flushes caches and captures graphs.

Everything is bound when a clock is made, before any candidate is imported, to functions of torch's
C extension where there are any: what a candidate replaces in Python is not used here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from time import perf_counter, sleep
from typing import Any, Protocol

import torch

Replay = Callable[[], None]

_LEAST_FLUSH = 1 << 26


class Clock(Protocol):
    """A device's own time."""

    def mark(self) -> Any:
        """A moment on the device, after all work enqueued so far."""
        ...

    def elapsed_us(self, start: Any, end: Any) -> float:
        """Microseconds between two moments that have passed."""
        ...

    def wait_for(self, mark: Any) -> None:
        """Until that moment has passed, and no longer."""
        ...

    def synchronise(self) -> None:
        """Until the device has nothing left to do, on any stream."""
        ...

    def flush(self) -> None:
        """Empties the last-level cache, enqueued."""
        ...

    def delay(self, us: float) -> None:
        """Keeps the device busy, so that the host gets ahead; enqueued."""
        ...

    def reset_persistence(self) -> None:
        """Takes back lines of the cache that were reserved."""
        ...

    def capture(self, calls: Sequence[Callable[[], Any]]) -> tuple[Replay, list[Any]]:
        """The calls as one graph, and their results. Raises RuntimeError where that fails."""
        ...


class CudaClock:
    """CUDA events on the stream that is current when the clock is made."""

    def __init__(self, l2_bytes: int) -> None:
        base = torch._C._CudaEventBase
        self._new = base
        self._record, self._elapsed = base.record, base.elapsed_time
        self._event_wait = base.synchronize
        self._synchronise = torch._C._cuda_synchronize
        self._sleep = torch._C._cuda_sleep
        self._stream = torch.cuda.current_stream()
        self._graph, self._side = torch.cuda.CUDAGraph, torch.cuda.Stream()
        self._graph_context, self._stream_context = torch.cuda.graph, torch.cuda.stream
        self._zero = torch.Tensor.zero_
        self._cycles_per_us = _cycles_per_us()
        self._reset = _driver_function("cuCtxResetPersistingL2Cache")
        size = 2 * max(l2_bytes, _LEAST_FLUSH)
        self._cache = torch.empty(size, dtype=torch.int8, device="cuda")

    def mark(self) -> Any:
        event = self._new(enable_timing=True)
        self._record(event, self._stream)
        return event

    def elapsed_us(self, start: Any, end: Any) -> float:
        return float(self._elapsed(start, end)) * 1e3

    def wait_for(self, mark: Any) -> None:
        self._event_wait(mark)

    def synchronise(self) -> None:
        self._synchronise()

    def flush(self) -> None:
        self._zero(self._cache)

    def delay(self, us: float) -> None:
        if us > 0:
            self._sleep(int(us * self._cycles_per_us))

    def reset_persistence(self) -> None:
        if self._reset is not None:
            self._reset()

    def capture(self, calls: Sequence[Callable[[], Any]]) -> tuple[Replay, list[Any]]:
        self._side.wait_stream(self._stream)
        with self._stream_context(self._side), torch.no_grad():
            for call in calls[:3]:
                call()
        self._stream.wait_stream(self._side)
        self._synchronise()
        graph = self._graph()
        with torch.no_grad(), self._graph_context(graph):
            results = [call() for call in calls]
        replay: Replay = graph.replay
        replay()
        self._synchronise()
        return replay, results


class HostClock:
    """The host's clock for programs on the CPU; there is nothing to flush and no graph."""

    def mark(self) -> Any:
        return perf_counter()

    def elapsed_us(self, start: Any, end: Any) -> float:
        return float(end - start) * 1e6

    def wait_for(self, mark: Any) -> None:
        """It has passed."""

    def synchronise(self) -> None:
        """Nothing runs beside the host."""

    def flush(self) -> None:
        """No cache is emptied."""

    def delay(self, us: float) -> None:
        """The host needs no lead."""

    def reset_persistence(self) -> None:
        """Nothing is reserved."""

    def capture(self, calls: Sequence[Callable[[], Any]]) -> tuple[Replay, list[Any]]:
        raise RuntimeError("there are no graphs on a CPU")


def clock_for(device: str, l2_bytes: int) -> Clock:
    """The clock of a device by torch's name of it."""
    return CudaClock(l2_bytes) if device.startswith("cuda") else HostClock()


def pause(seconds: float) -> None:
    """Lets time pass; bound before any candidate is imported."""
    sleep(seconds)


def _cycles_per_us() -> float:
    """The multiprocessors' clock in MHz, about."""
    rate = getattr(torch.cuda.get_device_properties(0), "clock_rate", 0)  # kHz
    return rate / 1e3 if rate else 1700.0


def _driver_function(name: str) -> Callable[[], int] | None:
    try:
        found: Callable[[], int] = getattr(ctypes.CDLL("libcuda.so.1"), name)
    except (OSError, AttributeError):
        return None
    return found

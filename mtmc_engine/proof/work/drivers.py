"""Stand-ins for a GPU driver, so that Triton compiles ahead of time and tunes without a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import jit
from triton.runtime.driver import driver

from mtmc_engine.core.device import DeviceCard


class AbsentGpu:
    """What Triton's runtime asks of its driver, answered for a card that is not here.

    Its benchmark runs each configuration once and prefers the first, within `configurations`
    configurations and `budget_s` seconds; later ones count as infinitely slow.
    """

    def __init__(self, card: DeviceCard, configurations: int = 64, budget_s: float = 60) -> None:
        self.card = card
        self.configurations = configurations
        self.until = time.monotonic() + budget_s
        self.utils = SimpleNamespace(get_device_properties=lambda device=0: self._properties())

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.card.arch, self.card.warp_size)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cpu

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(1)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Nothing is timed."""

    def get_benchmarker(self) -> Callable[..., list[float]]:
        ran = 0

        def benchmark(kernel_call: Callable[[], Any], **_: Any) -> list[float]:
            nonlocal ran
            if ran and (ran >= self.configurations or time.monotonic() > self.until):
                return [float("inf")] * 3
            kernel_call()
            ran += 1
            return [float(ran)] * 3

        return benchmark

    def _properties(self) -> dict[str, int]:
        return {
            "max_shared_mem": self.card.shared_bytes,
            "multiprocessor_count": self.card.sms,
            "max_num_regs": self.card.registers_per_sm,
            "warpSize": self.card.warp_size,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }


def _know_constexpr() -> None:
    """The interpreter reads annotations as text, and knows `tl.constexpr` by no other name."""
    known = jit._normalize_ty

    def normalize(annotation: Any) -> str:
        named = isinstance(annotation, str) and annotation.strip().endswith(".constexpr")
        return "constexpr" if named else str(known(annotation))

    jit._normalize_ty = normalize


def pretend(card: DeviceCard, configurations: int = 64, budget_s: float = 60) -> None:
    """Makes Triton and torch.cuda's questions about the card be answered for `card`.

    For processes without a GPU only: launchers ask for the number of multiprocessors, say.
    """
    driver.set_active(AbsentGpu(card, configurations, budget_s))
    _know_constexpr()
    facts = SimpleNamespace(
        name=card.name,
        gcnArchName=card.name,
        major=card.arch // 10,
        minor=card.arch % 10,
        multi_processor_count=card.sms,
        total_memory=1 << 36,
        L2_cache_size=card.l2_bytes,
        warp_size=card.warp_size,
        regs_per_multiprocessor=card.registers_per_sm,
        shared_memory_per_block_optin=card.shared_bytes,
        max_threads_per_multi_processor=2048,
    )
    answers: dict[str, Any] = {
        "get_device_properties": facts,
        "get_device_capability": (facts.major, facts.minor),
        "get_device_name": card.name,
        "synchronize": None,
        "current_device": 0,
        "device_count": 1,
        "set_device": None,
        "empty_cache": None,
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "reset_peak_memory_stats": None,
        "mem_get_info": (facts.total_memory, facts.total_memory),
        "is_current_stream_capturing": False,
        "current_stream": AbsentStream(),
        "default_stream": AbsentStream(),
        "set_stream": None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, _answering(answer))
    torch.cuda.Stream = torch.cuda.ExternalStream = AbsentStream
    torch.cuda.Event = AbsentEvent
    torch.cuda.device = torch.cuda.device_of = torch.cuda.stream = _Here


def _answering(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


class _Here:
    """A context that selects the device or stream that there is."""

    def __init__(self, *_: Any) -> None:
        """Whatever is selected."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        """Nothing to go back to."""


class AbsentStream(_Here):
    """A stream where everything has happened as soon as it is called."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0
    device = "cuda:0"

    def __init__(self, *_: Any, **__: Any) -> None:
        """All streams are alike."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> Any:
        return event or AbsentEvent()

    def query(self) -> bool:
        return True


class AbsentEvent:
    """An event that has happened when it is asked."""

    cuda_event = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        """All events are alike."""

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, end: Any) -> float:
        return float(end.at - self.at) * 1e3

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        return True

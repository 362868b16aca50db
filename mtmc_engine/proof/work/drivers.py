"""Stand-ins for a GPU driver, so that Triton compiles ahead of time and tunes without a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
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


def pretend(card: DeviceCard, configurations: int = 64, budget_s: float = 60) -> None:
    """Makes Triton and torch.cuda's questions about the card be answered for `card`.

    For processes without a GPU only: launchers ask for the number of multiprocessors, say.
    """
    driver.set_active(AbsentGpu(card, configurations, budget_s))
    facts = SimpleNamespace(
        name=card.name,
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
    torch.cuda.get_device_properties = lambda *_, **__: facts
    torch.cuda.get_device_capability = lambda *_, **__: (facts.major, facts.minor)
    torch.cuda.get_device_name = lambda *_, **__: card.name
    torch.cuda.synchronize = lambda *_, **__: None
    torch.cuda.current_device = lambda: 0

"""What all tasks of a bench share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mtmc_engine.bench.options import BenchOptions
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.proof.prove import Bounds
from mtmc_engine.session.seams import Exporter
from mtmc_engine.system.config import Config


@dataclass(frozen=True)
class Bench:
    """Options, settings and card. slots: bounds how many children compile ahead at once."""

    options: BenchOptions
    config: Config
    device: DeviceCard
    exporter: Exporter
    slots: asyncio.Semaphore

    @property
    def bounds(self) -> Bounds:
        return Bounds.of(self.config.limits)

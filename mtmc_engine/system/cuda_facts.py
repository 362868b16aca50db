"""What the CUDA driver says of a GPU, asked in a process of its own: this one never opens it."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
from msgspec import Struct

from mtmc_engine.system.environment import without_secrets

# cuDeviceGetAttribute's numbers (cuda.h); they need no context, so that no GPU memory is taken.
_ASK = """
import ctypes, json
cuda = ctypes.CDLL("libcuda.so.1")
device, value = ctypes.c_int(), ctypes.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
names = dict(sms=16, clock_khz=13, memory_clock_khz=36, bus_bits=37, l2_bytes=38, shared_bytes=97)
found = {}
for name, number in names.items():
    assert cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device) == 0
    found[name] = value.value
print(json.dumps(found))
"""
_PATIENCE_S = 20


class CudaFacts(Struct, frozen=True):
    """Facts of the first GPU that CUDA programs see here.

    bus_bits: width of the memory's bus. shared_bytes: most that one block may ask for.
    """

    sms: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    l2_bytes: int
    shared_bytes: int

    @property
    def bandwidth_gbs(self) -> float:
        """Peak of the device memory: two transfers a clock, as with all that CUDA cards carry."""
        return 2 * self.memory_clock_khz * self.bus_bits / 8 / 1e6


def cuda_facts() -> CudaFacts | None:
    """None where there is no driver, or it does not tell."""
    try:
        said = subprocess.run(
            [sys.executable, "-P", "-c", _ASK],
            capture_output=True,
            timeout=_PATIENCE_S,
            check=True,
            env=without_secrets(os.environ),
        )
        facts = msgspec.json.decode(said.stdout, type=CudaFacts)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
        return None
    return facts if facts.sms and facts.bandwidth_gbs else None

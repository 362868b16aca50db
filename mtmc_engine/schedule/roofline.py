"""Rooflines of one card: how long one kernel takes at best, and what its shape costs it.

The constants are those of measured copies and matrix products on recent NVIDIA cards; they
rank programs and never stand for a measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import ITEM_BYTES

# What a long copy reaches of the peak (H200: 4.3 of 4.8 TB/s).
COPY_EFFICIENCY = 0.9
# Time from a load to its data; with the bandwidth it says how many bytes must be in flight.
LATENCY_US = 0.8
# L2 delivers about this many times the bandwidth of device memory.
L2_SPEEDUP = 2.5
# What one access takes from memory at least.
SECTOR_BYTES = 32
MAX_WARPS_PER_SM = 64
MAX_PROGRAMS_PER_SM = 32
MAX_REGISTERS = 255
# What matrix products reach: of the fp32 peak on plain cores, and of a card's tensor-core rates,
# which are already those of large products.
PLAIN_DOT_EFFICIENCY = {"library": 0.85, "triton": 0.45}
TENSOR_DOT_EFFICIENCY = {"library": 0.97, "triton": 0.9}
# Part of the shorter of copy and arithmetic that a pipeline of n stages hides.
_OVERLAP = {1: 0.0, 2: 0.7, 3: 0.88, 4: 0.94}


@dataclass(frozen=True)
class Kernel:
    """One launch: bytes to and from device memory, operations, device time without the launch."""

    bytes_moved: int
    flops: int
    time_us: float


@dataclass(frozen=True)
class Product:
    """A batched matrix product: (m, k) times (k, n), `item` bytes an element."""

    batch: int
    m: int
    n: int
    k: int
    item: int

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k


@dataclass(frozen=True)
class Tile:
    """How a matrix product is cut: block sizes, warps, pipeline stages, who wrote the kernel."""

    m: int
    n: int
    k: int
    warps: int = 8
    stages: int = 3
    maker: str = "triton"


def scattered_us(device: DeviceCard, nbytes: float, run: int) -> float:
    """Time beyond a plain walk for a tensor that is read or written across its order in memory.

    run: bytes that lie side by side. Each run takes a sector of its own, most of them from L2.
    """
    times = max(1.0, SECTOR_BYTES / run / L2_SPEEDUP)
    return nbytes * (times - 1) / bytes_per_us(device)


def bytes_per_us(device: DeviceCard) -> float:
    """Peak bandwidth of device memory."""
    return device.bandwidth_gbs * 1e3


def flops_per_us(device: DeviceCard, mode: str) -> float:
    """Peak arithmetic of a mode; that of fp32 where the card does not state it.

    "tf32x3" is float32 as three passes of TF32.
    """
    if mode == "tf32x3":
        return flops_per_us(device, "tf32") / 3
    return device.tflops.get(mode, device.tflops["fp32"]) * 1e6


def ideal_us(device: DeviceCard, nbytes: int, flops: int, mode: str) -> float:
    """The roofline itself: the slower of moving the bytes and doing the operations."""
    return max(nbytes / bytes_per_us(device), flops / flops_per_us(device, mode))


def memory_us(
    device: DeviceCard,
    nbytes: float,
    *,
    programs: float,
    warps: int,
    bytes_in_flight: float,
    registers: int = 32,
    vector_bytes: int = 16,
) -> float:
    """Time to move bytes with a grid of programs.

    bytes_in_flight: what one program has requested at once. registers: per thread.
    vector_bytes: width of one load of one thread.
    """
    if nbytes <= 0 or bytes_in_flight <= 0:
        return 0.0
    active = min(resident_programs(device, warps, registers), programs / device.sms)
    needed = bytes_per_us(device) * LATENCY_US / device.sms
    saturation = 1 - math.exp(-2 * max(active, 1e-9) * bytes_in_flight / needed)
    width = {16: 1.0, 8: 0.95, 4: 0.85, 2: 0.65}.get(min(16, vector_bytes), 0.5)
    spill = max(1.0, registers / MAX_REGISTERS) ** 2
    return spill * nbytes / (bytes_per_us(device) * COPY_EFFICIENCY * saturation * width)


def sweeps_in_memory(device: DeviceCard, sweeps: int, working_set: float) -> float:
    """How many sweeps over the same bytes a program waits for, in units of the first one.

    working_set: bytes that all resident programs sweep at once; what of it stays in L2 is read
    again at L2's speed. About half of L2 is counted as theirs.
    """
    kept = min(1.0, 0.5 * device.l2_bytes / max(working_set, 1.0))
    return 1 + (sweeps - 1) * (1 - kept + kept / L2_SPEEDUP)


def resident_programs(device: DeviceCard, warps: int, registers: int, shared_bytes: int = 0) -> int:
    """Programs that one multiprocessor holds at once, at least 1."""
    by_registers = device.registers_per_sm // (max(1, min(registers, MAX_REGISTERS)) * 32 * warps)
    by_shared = device.shared_bytes // shared_bytes if shared_bytes else MAX_PROGRAMS_PER_SM
    return max(1, min(MAX_PROGRAMS_PER_SM, MAX_WARPS_PER_SM // warps, by_registers, by_shared))


def shared_need(tile: Tile, item: int) -> int:
    """Bytes of shared memory that the operand buffers of a tile take."""
    return max(1, tile.stages) * (tile.m + tile.n) * tile.k * item


def accumulator_registers(tile: Tile) -> int:
    """Registers per thread that hold the fp32 accumulator."""
    return tile.m * tile.n // (tile.warps * 32)


def product_us(
    device: DeviceCard, product: Product, tile: Tile, mode: str, extra_bytes: float = 0
) -> float:
    """Time of a tiled matrix product; infinite where the tile does not fit in shared memory.

    extra_bytes: what an epilogue reads and writes besides the two operands.
    """
    shared = shared_need(tile, product.item)
    if shared > device.shared_bytes:
        return math.inf
    if not product.flops:
        return 0.0
    columns = math.ceil(product.n / tile.n)
    tiles = product.batch * math.ceil(product.m / tile.m) * columns
    registers = accumulator_registers(tile) + 40
    resident = resident_programs(device, tile.warps, registers, shared)
    # Tiles that share a multiprocessor share its arithmetic: only whole rounds of SMs count.
    rounds = math.ceil(tiles / device.sms)
    steps = math.ceil(product.k / tile.k)
    tile_flops = 2 * tile.m * tile.n * steps * tile.k
    arithmetic = rounds * tile_flops / (_dot_rate(device, tile, mode) / device.sms)
    traffic = tiles * (tile.m + tile.n) * steps * tile.k * product.item
    busy = min(1.0, tiles * 1.5 / device.sms)
    cached = traffic / (bytes_per_us(device) * L2_SPEEDUP * busy)
    operands = product.batch * product.k * (product.m + product.n) * product.item
    memory = (operands + extra_bytes) / (bytes_per_us(device) * COPY_EFFICIENCY * busy)
    moving = max(cached, memory)
    overlap = max(_OVERLAP.get(tile.stages, 0.95), 0.6 if resident > 1 else 0.0)
    filling = min(tile.stages, steps)
    start = LATENCY_US * (1 + 0.3 * filling) * math.ceil(rounds / resident)
    spill = max(1.0, registers / MAX_REGISTERS) ** 2
    longer, shorter = max(arithmetic, moving), min(arithmetic, moving)
    return start + spill * (longer + (1 - overlap) * shorter)


def _dot_rate(device: DeviceCard, tile: Tile, mode: str) -> float:
    """Operations per microsecond that the whole card reaches with such tiles."""
    table = PLAIN_DOT_EFFICIENCY if mode == "fp32" else TENSOR_DOT_EFFICIENCY
    per_warp = tile.m * tile.n / tile.warps
    feeding: float = min(1.0, (per_warp / 2048) ** 0.35)
    depth = 1.0 if tile.k >= 32 else 0.85
    return flops_per_us(device, mode) * table[tile.maker] * feeding * depth


_LIBRARY_BLOCKS = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 64))
LIBRARY_TILES = (
    *(Tile(m, n, 32, 8 if m * n >= 128 * 128 else 4, 4, "library") for m, n in _LIBRARY_BLOCKS),
    Tile(16, 64, 64, 4, 4, "library"),
)


def library_product_us(device: DeviceCard, product: Product, mode: str, extra: float) -> float:
    """What a tuned library needs: its best tile, or a split of the long dimension."""
    best = min(product_us(device, product, tile, mode, extra) for tile in LIBRARY_TILES)
    splits = min(16, product.k // 512)
    if splits < 2:
        return best
    part = Product(product.batch * splits, product.m, product.n, product.k // splits, product.item)
    partial = 2.0 * splits * product.batch * product.m * product.n * 4
    return min(best, *(product_us(device, part, t, mode, extra + partial) for t in LIBRARY_TILES))


def item_bytes(dtype: str) -> int:
    """Bytes of one element, 4 for dtypes that are not known."""
    return ITEM_BYTES.get(dtype, 4)

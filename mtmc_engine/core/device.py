"""What a GPU can do: the numbers that floors, estimates and planners use."""

from __future__ import annotations

from msgspec import Struct


class DeviceCard(Struct, frozen=True):
    """Facts of one GPU, or of the one that is compiled for.

    arch: compute capability times ten: 90 for sm_90.
    bandwidth_gbs: peak device-memory bandwidth, GB/s (reads plus writes).
    tflops: peak arithmetic by mode, TFLOP/s: "fp32", "tf32", "fp16", "bf16".
    shared_bytes: shared memory that one program may use.
    launch_us: host cost of one kernel launch.
    present: whether the card is in this machine.
    """

    name: str
    arch: int
    sms: int
    bandwidth_gbs: float
    tflops: dict[str, float]
    shared_bytes: int
    l2_bytes: int
    registers_per_sm: int = 65536
    warp_size: int = 32
    launch_us: float = 2.5
    present: bool = False

"""Device cards of known GPUs, and of the one in this machine."""

from __future__ import annotations

import functools
import os
import subprocess
from typing import NamedTuple

import msgspec

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.cuda_facts import CudaFacts, cuda_facts
from mtmc_engine.system.suggest import nearest

DEFAULT_TARGET = "sm_90"
_MB = 1 << 20
# Tensor-core rates are what large matmuls reach, since estimates are made from them: measured on
# an H200 (385 of 495 in TF32, 790 of 989 in bf16), elsewhere 0.78 of the data sheet's dense rate.
_REACHED = 0.78


# Most shared memory one block may ask for, by compute capability (CUDA programming guide).
_SHARED_BYTES = {
    75: 65536,
    80: 166912,
    86: 101376,
    89: 101376,
    90: 232448,
    100: 232448,
    120: 101376,
}


class _Sheet(NamedTuple):
    """A data sheet: GB/s, dense TFLOP/s, MiB; `fp32` is without tensor cores."""

    name: str
    arch: int
    sms: int
    bandwidth_gbs: float
    fp32: float
    tf32: float
    half: float
    l2_mb: int


def _of_sheet(sheet: _Sheet) -> DeviceCard:
    half = round(sheet.half * _REACHED, 1)
    tf32 = round(sheet.tf32 * _REACHED, 1)
    return DeviceCard(
        name=sheet.name,
        arch=sheet.arch,
        sms=sheet.sms,
        bandwidth_gbs=sheet.bandwidth_gbs,
        tflops={"fp32": sheet.fp32, "tf32": tf32, "fp16": half, "bf16": half},
        shared_bytes=_SHARED_BYTES[sheet.arch],
        l2_bytes=sheet.l2_mb * _MB,
    )


_CARDS = (
    DeviceCard(
        name="H200",
        arch=90,
        sms=132,
        bandwidth_gbs=4800.0,
        tflops={"fp32": 67.0, "tf32": 385.0, "fp16": 790.0, "bf16": 790.0},
        shared_bytes=_SHARED_BYTES[90],
        l2_bytes=60 * _MB,
    ),
    _of_sheet(_Sheet("A100", 80, 108, 2039, 19.5, 156, 312, 40)),
    _of_sheet(_Sheet("RTX 3090", 86, 82, 936, 35.6, 35.6, 71, 6)),
    _of_sheet(_Sheet("RTX 4090", 89, 128, 1008, 82.6, 82.6, 165, 72)),
    _of_sheet(_Sheet("B200", 100, 148, 8000, 75, 1100, 2250, 126)),
    _of_sheet(_Sheet("H100 PCIe", 90, 114, 2039, 51, 378, 756, 50)),
    _of_sheet(_Sheet("H100", 90, 132, 3350, 67, 495, 989, 50)),
    _of_sheet(_Sheet("GH200", 90, 132, 4000, 67, 495, 989, 60)),
    _of_sheet(_Sheet("A30", 80, 56, 933, 10.3, 82, 165, 24)),
    _of_sheet(_Sheet("A10", 86, 72, 600, 31.2, 62.5, 125, 6)),
    _of_sheet(_Sheet("RTX A6000", 86, 84, 768, 38.7, 77.4, 155, 6)),
    _of_sheet(_Sheet("L40S", 89, 142, 864, 91.6, 183, 362, 96)),
    _of_sheet(_Sheet("L4", 89, 58, 300, 30.3, 60, 121, 48)),
    _of_sheet(_Sheet("RTX 5090", 120, 170, 1792, 104.8, 104.8, 209, 96)),
    _of_sheet(_Sheet("T4", 75, 40, 320, 8.1, 8.1, 65, 4)),
)


def cards() -> dict[str, DeviceCard]:
    """The card that stands for each target that can be compiled for, by "sm_80" and so on."""
    found: dict[str, DeviceCard] = {}
    for card_ in _CARDS:
        found.setdefault(f"sm_{card_.arch}", card_)
    return found


def _by_name() -> dict[str, DeviceCard]:
    return {card_.name.lower().replace(" ", "-"): card_ for card_ in _CARDS}


def card(target: str | None) -> DeviceCard:
    """The card for a target: "sm_90", a name such as "h100", or "auto" (also None).

    "auto" is the GPU of this machine, else sm_90. A named target of this machine's own
    architecture is this machine's GPU. Raises UsageError for an unknown target.
    """
    local = local_gpu()
    if target in (None, "", "auto"):
        return local or cards()[DEFAULT_TARGET]
    assert target is not None
    wanted = target.lower().replace("_", "-").replace(" ", "-")
    for name, known in {**_by_name(), **cards()}.items():
        if name.replace("_", "-") == wanted:
            same = local is not None and local.arch == known.arch and name.startswith("sm_")
            return local if same and local else known
    guess = nearest(target, [*cards(), *_by_name(), "auto"])
    raise UsageError(f'Target "{target}" is unknown; did you mean "{guess}"?')


class GpuFacts(msgspec.Struct, frozen=True):
    """What the driver says of one GPU. arch: compute capability times ten."""

    index: int
    name: str
    arch: int
    memory_mb: int
    driver: str


@functools.cache
def gpus() -> tuple[GpuFacts, ...]:
    """All GPUs that nvidia-smi lists; none where it is absent or fails."""
    query = "--query-gpu=index,name,compute_cap,memory.total,driver_version"
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(_facts(line) for line in done.stdout.splitlines() if line.count(",") == 4)


def _facts(line: str) -> GpuFacts:
    index, name, capability, memory, driver = (field.strip() for field in line.split(","))
    major, _, minor = capability.partition(".")
    megabytes = int(memory) if memory.isdigit() else 0
    return GpuFacts(int(index), name, int(major) * 10 + int(minor or 0), megabytes, driver)


def local_gpu() -> DeviceCard | None:
    """The first GPU that CUDA programs of this machine see, with present=True.

    Its numbers are those of its own model where that is known, else as `card_of` finds them.
    """
    gpu = _first_visible()
    return card_of(gpu.name, gpu.arch) if gpu else None


def how_known(gpu: DeviceCard) -> str:
    """Where the numbers of a GPU in this machine come from, in words; "" where they are its own."""
    found = _first_visible()
    if found is None or _model(found.name, found.arch) is not None:
        return ""
    like = _nearest(gpu.arch)
    if cuda_facts_once() is None:
        return f"its model is not known: the numbers are those of {like.name} (sm_{like.arch})"
    return (
        "its model is not known: SMs, bandwidth and L2 are the driver's, arithmetic rates are "
        f"scaled from {like.name} (sm_{like.arch})"
    )


def _first_visible() -> GpuFacts | None:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    first = visible.split(",")[0].strip() if visible is not None else "0"
    if first in ("", "-1"):
        return None
    index = int(first) if first.isdigit() else 0
    return next((gpu for gpu in gpus() if gpu.index == index), None)


def card_of(name: str, arch: int) -> DeviceCard:
    """The card of a GPU in this machine, by the driver's name for it and its architecture.

    An unknown model has the numbers that the driver tells, and arithmetic rates in proportion to
    those of the nearest known architecture; without them it has that one's numbers.
    """
    known = _model(name, arch)
    if known is not None:
        return msgspec.structs.replace(known, present=True)
    plain = name.removeprefix("NVIDIA ").strip()
    like = msgspec.structs.replace(_nearest(arch), name=plain, arch=arch, present=True)
    facts = cuda_facts_once()
    if facts is None:
        return like
    return msgspec.structs.replace(
        like,
        sms=facts.sms,
        bandwidth_gbs=round(facts.bandwidth_gbs, 1),
        tflops={mode: round(rate * facts.sms / like.sms, 1) for mode, rate in like.tflops.items()},
        shared_bytes=facts.shared_bytes,
        l2_bytes=facts.l2_bytes,
    )


@functools.cache
def cuda_facts_once() -> CudaFacts | None:
    """What the driver says, asked for once."""
    return cuda_facts()


def _model(name: str, arch: int) -> DeviceCard | None:
    """The table's entry for a driver's name."""
    words = name.upper().replace("-", " ").split()
    for known in sorted(_CARDS, key=lambda one: -len(one.name)):
        if known.arch == arch and all(word in words for word in known.name.upper().split()):
            return known
    return None


def _nearest(arch: int) -> DeviceCard:
    older = [one for one in _CARDS if one.arch <= arch] or list(_CARDS)
    return max(older, key=lambda one: one.arch)

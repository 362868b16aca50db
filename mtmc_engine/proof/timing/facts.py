"""What nvidia-smi says about the card while it is timed."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable
from time import sleep
from typing import Any

_FIELDS = {
    "name": "name",
    "driver": "driver_version",
    "sm_clock_mhz": "clocks.sm",
    "memory_clock_mhz": "clocks.mem",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
    "throttle_reasons": "clocks_event_reasons.active",
}
_OLDER_NAMES = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
# Bits of the throttle reasons that lower clocks under load: power cap, hardware slowdown, thermal.
_SLOWING = 0x04 | 0x08 | 0x20 | 0x40 | 0x80
_LOOKS_AGAIN, _ENDING_S = 2, 0.15


def device_facts(ours: int = 0) -> dict[str, Any]:
    """Clocks, temperature, power, throttling and other processes on the card; {} without one.

    ours: processes on it that belong to this session.
    """
    found = _query(list(_FIELDS.values())) or _query(
        [_OLDER_NAMES.get(field, field) for field in _FIELDS.values()]
    )
    if not found:
        return {}
    facts: dict[str, Any] = {
        name: _number(value) for name, value in zip(_FIELDS, found, strict=True)
    }
    facts["throttled"] = _throttled(str(facts["throttle_reasons"]))
    facts["other_processes"] = _others(ours)
    return facts


# Of NVML: function, arguments between handle and answer, factor to the unit in the name.
_QUESTIONS: dict[str, tuple[str, tuple[int, ...], float]] = {
    "sm_clock_mhz": ("nvmlDeviceGetClockInfo", (1,), 1.0),
    "temperature_c": ("nvmlDeviceGetTemperature", (0,), 1.0),
    "power_w": ("nvmlDeviceGetPowerUsage", (), 1e-3),
}


class Watch:
    """The throttle reasons of the card, asked of the driver's library: microseconds a question.

    Where there is no such library, the card never seems slowed.
    """

    def __init__(self) -> None:
        self._ask: Callable[[Any, Any], int] | None = None
        self._library: Any = None
        self._handle = ctypes.c_void_p()
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
            ready = library.nvmlInit_v2() == 0 and self._find(library) == 0
            self._library = library if ready else None
            self._ask = library.nvmlDeviceGetCurrentClocksThrottleReasons if ready else None
        except (OSError, AttributeError):
            return

    def _find(self, library: Any) -> int:
        first = _first_visible()
        handle = ctypes.byref(self._handle)
        if first.isdigit():
            return int(library.nvmlDeviceGetHandleByIndex_v2(int(first), handle))
        return int(library.nvmlDeviceGetHandleByUUID(first.encode(), handle))

    def facts(self) -> dict[str, Any]:
        """Clock, temperature and power at this moment; {} where the library does not say."""
        if self._library is None:
            return {}
        found: dict[str, Any] = {}
        for name, (question, extra, scale) in _QUESTIONS.items():
            value = ctypes.c_uint()
            ask = getattr(self._library, question, None)
            if ask is not None and ask(self._handle, *extra, ctypes.byref(value)) == 0:
                found[name] = value.value * scale
        return found

    def slowed(self) -> bool:
        """Whether the card has lowered its clocks at this moment."""
        reasons = ctypes.c_ulonglong()
        if self._ask is None or self._ask(self._handle, ctypes.byref(reasons)) != 0:
            return False
        return bool(reasons.value & _SLOWING)


def _first_visible() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"


def _visible() -> list[str]:
    return ["-i", _first_visible()]


def _query(fields: list[str]) -> list[str]:
    said = _ask(f"--query-gpu={','.join(fields)}")
    values = [value.strip() for value in said.splitlines()[0].split(",")] if said else []
    return values if len(values) == len(fields) else []


def _others(ours: int) -> int:
    """Other processes on the card. One that has just ended stays in the list for a moment."""
    found = _processes() - ours
    for _ in range(_LOOKS_AGAIN):
        if found <= 0:
            break
        sleep(_ENDING_S)
        found = min(found, _processes() - ours)
    return max(0, found)


def _processes() -> int:
    """How many other processes compute on the card."""
    lines = _ask("--query-compute-apps=pid").splitlines()
    return len([line for line in lines if line.strip().isdigit() and int(line) != os.getpid()])


def _ask(question: str) -> str:
    try:
        said = subprocess.run(
            ["nvidia-smi", *_visible(), question, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout if said.returncode == 0 else ""


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _throttled(reasons: str) -> bool:
    try:
        return bool(int(reasons, 16) & _SLOWING)
    except ValueError:
        return False

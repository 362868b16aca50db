"""What nvidia-smi says about the card while it is timed."""

from __future__ import annotations

import os
import subprocess
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


def device_facts() -> dict[str, Any]:
    """Clocks, temperature, power, throttling and the processes on the card; {} without one."""
    found = _query(list(_FIELDS.values())) or _query(
        [_OLDER_NAMES.get(field, field) for field in _FIELDS.values()]
    )
    if not found:
        return {}
    facts: dict[str, Any] = {
        name: _number(value) for name, value in zip(_FIELDS, found, strict=True)
    }
    facts["throttled"] = _throttled(str(facts["throttle_reasons"]))
    facts["other_processes"] = _processes()
    return facts


def _visible() -> list[str]:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    return ["-i", first]


def _query(fields: list[str]) -> list[str]:
    said = _ask(f"--query-gpu={','.join(fields)}")
    values = [value.strip() for value in said.splitlines()[0].split(",")] if said else []
    return values if len(values) == len(fields) else []


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

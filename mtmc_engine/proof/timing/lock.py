"""One lock per GPU: whoever takes samples has the card alone, whoever only computes shares it.

The lock's file has a gate beside it that everybody passes one at a time, and waits in for the
lock: those who come after one that wants the card alone queue behind it, and it gets the card
when those are through who have it now.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def lock_file() -> str:
    """The lock's path, the same for every process of this machine that uses the device."""
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    path = Path(tempfile.gettempdir()) / f"mtmc-gpu-{device.replace('/', '_')}.lock"
    for file in (path, Path(gate_of(str(path)))):
        if not file.exists():  # those who use it may be shut in, and find it only where it is
            file.touch(mode=0o666)
    return str(path)


def gate_of(file: str) -> str:
    """Path of the gate of a lock."""
    return f"{file}.gate"


@contextmanager
def alone(file: str) -> Iterator[None]:
    """Waits until nobody else uses the device; "" locks nothing."""
    with _held(file, fcntl.LOCK_EX):
        yield


@contextmanager
def among_others(file: str) -> Iterator[None]:
    """Waits until nobody takes samples; "" locks nothing."""
    with _held(file, fcntl.LOCK_SH):
        yield


@contextmanager
def _held(file: str, kind: int) -> Iterator[None]:
    if not file:
        yield
        return
    descriptor = _opened(file)
    try:
        gate = _opened(gate_of(file))
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(descriptor, kind)
        finally:
            os.close(gate)
        yield
    finally:
        os.close(descriptor)


def _opened(file: str) -> int:
    return os.open(file, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)

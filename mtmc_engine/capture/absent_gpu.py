"""Importing a file with Triton kernels where there is no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import torch
from triton.runtime.driver import driver


class _Absent:
    """Answers what modules ask of Triton's driver while they are imported."""

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_current_device(self) -> int:
        return 0

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError("0 active drivers: Triton finds no GPU here.")


@contextmanager
def stand_in() -> Iterator[None]:
    """Within it, a file may ask for the active device, as tutorials do, and gets the CPU.

    Nothing changes where there is a GPU or where another stand-in is active. A launch still says
    that it needs a GPU.
    """
    if torch.cuda.is_available() or driver._active is not None:
        yield
        return
    driver.set_active(_Absent())
    try:
        yield
    finally:
        driver._active = None

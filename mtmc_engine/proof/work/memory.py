"""Poisoned and guarded memory: what a candidate does not write, or writes outside, shows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_GUARD_BYTES = 1 << 16
# Larger allocations are poisoned but not guarded, so that memory use stays what it is.
_GUARDED_UP_TO = 1 << 26
_GUARD_BYTE = 0x7B
# Of <malloc.h>: new memory is filled with the complement of a byte, freed memory with the byte.
_M_PERTURB = -6

_UNINITIALISED = {
    torch.empty,
    torch.empty_like,
    torch.empty_strided,
    torch.empty_permuted,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}
_INITIALISED = {
    torch.zeros,
    torch.zeros_like,
    torch.ones,
    torch.ones_like,
    torch.full,
    torch.full_like,
    torch.clone,
    torch.Tensor.new_zeros,
    torch.Tensor.new_ones,
    torch.Tensor.new_full,
    torch.Tensor.clone,
    torch.Tensor.contiguous,
}


def poison(dtype: torch.dtype, call: int) -> float | int | bool:
    """A finite value that no result has by chance; its sign changes from call to call."""
    sign = 1 if call % 2 == 0 else -1
    if dtype.is_complex or dtype in (torch.float32, torch.bfloat16, torch.float64):
        return sign * 1.2345e19
    if dtype.is_floating_point:
        return sign * min(27182.0, float(torch.finfo(dtype).max))
    if dtype == torch.bool:
        return call % 2 == 0
    limits = torch.iinfo(dtype)
    return int(limits.max - 3 if call % 2 == 0 else limits.min + (3 if limits.min else 5))


def poison_host_memory() -> None:
    """Fills what the C library hands out from now on in this process, where it knows how (glibc).

    Memory that does not come through PyTorch's functions for empty tensors is poison, too.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_PERTURB, _GUARD_BYTE ^ 0xFF)


@dataclass(frozen=True)
class _Zone:
    """An allocation between two guards: `raw` holds guard, data and guard as bytes."""

    raw: torch.Tensor
    nbytes: int
    words: str


class Guarded(TorchFunctionMode):  # type: ignore[misc]
    """Within it, new tensors of the candidate lie between guards and start as poison.

    call: counts calls, for the sign of the poison.
    """

    def __init__(self, call: int = 0) -> None:
        super().__init__()
        self.call = call
        self._zones: list[_Zone] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func in _UNINITIALISED:
            return self._fenced(made, keep=False)
        if func in _INITIALISED and "out" not in (kwargs or {}):
            shared = func is torch.Tensor.contiguous and made is args[0]
            return made if shared else self._fenced(made, keep=True)
        return made

    def guard(self, value: torch.Tensor, words: str) -> torch.Tensor:
        """A copy of `value`, same strides, between guards. Not to be called within the mode."""
        zone = None if 0 in value.stride() else _fence(value, words)
        if zone is None:
            return value
        self._zones.append(zone[0])
        zone[1].copy_(value)
        return zone[1]

    def _fenced(self, made: torch.Tensor, keep: bool) -> torch.Tensor:
        if made.layout is not torch.strided or made.device.type == "meta" or not made.numel():
            return made
        found = _fence(made, f"a tensor of shape {tuple(made.shape)}")
        target = made
        if found is not None:
            self._zones.append(found[0])
            target = found[1]
        if not keep:
            target.fill_(poison(made.dtype, self.call))
        elif target is not made:
            target.copy_(made)
        return target

    def overruns(self) -> list[str]:
        """Which allocations were written past their ends, in words."""
        found = []
        for zone in self._zones:
            before, after = zone.raw[:_GUARD_BYTES], zone.raw[_GUARD_BYTES + zone.nbytes :]
            if bool((after != _GUARD_BYTE).any()):
                at = int((after != _GUARD_BYTE).nonzero()[0])
                found.append(f"{zone.words} was written {at} bytes past its end")
            elif bool((before != _GUARD_BYTE).any()):
                found.append(f"{zone.words} was written before its beginning")
        return found

    def forget(self, keep: int = 0) -> None:
        """Lets all but the first `keep` guarded allocations go."""
        del self._zones[keep:]


def _fence(like: torch.Tensor, words: str) -> tuple[_Zone, torch.Tensor] | None:
    """A tensor as `like` inside a larger allocation; None where it is too large or has no size."""
    if not like.numel() or any(s < 0 for s in like.stride()):
        return None
    span = 1 + sum((n - 1) * s for n, s in zip(like.shape, like.stride(), strict=True))
    nbytes = span * like.element_size()
    if nbytes > _GUARDED_UP_TO:
        return None
    raw = torch.empty(nbytes + 2 * _GUARD_BYTES, dtype=torch.uint8, device=like.device)
    raw.fill_(_GUARD_BYTE)
    inside = torch.empty(0, dtype=like.dtype, device=like.device)
    offset = _GUARD_BYTES // like.element_size()
    inside.set_(raw.untyped_storage(), offset, like.shape, like.stride())
    return _Zone(raw, nbytes, words), inside

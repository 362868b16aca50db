"""Making inputs: distributions, memory layouts, and walking through results."""

from __future__ import annotations

from typing import Any

import torch

from mtmc_engine.proof.wire import Distribution, Layout

# Row padding of a slice in elements: odd, so that rows are not aligned.
_PADDING = 3
_FACTORS = {"times 3": 3.0, "times 0.01": 0.01, "negated": -1.0}


def distributed(value: Any, distribution: Distribution) -> Any:
    """A floating-point tensor's contents changed as `distribution` says; others as they are."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    if distribution in _FACTORS:
        return value * _FACTORS[distribution]
    if distribution == "large offset":
        return value + (1000.0 if value.dtype in (torch.float32, torch.float64) else 64.0)
    if distribution == "constant rows" and value.dim() and value.shape[-1]:
        return value[..., :1].expand_as(value).clone()
    return value


def laid_out(values: list[Any], layout: Layout) -> list[Any]:
    """The same contents in other memory layouts; each tensor has its own storage."""
    out = []
    first = True
    for value in values:
        if not isinstance(value, torch.Tensor):
            out.append(value)
            continue
        chosen: Layout = layout
        if layout == "mixed":
            chosen = "transposed" if first else "contiguous"
        first = False
        out.append(_stored(value, chosen))
    return out


def _stored(value: torch.Tensor, layout: Layout) -> torch.Tensor:
    if layout == "transposed" and value.dim() >= 2:
        return value.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "swapped" and value.dim() >= 3:
        return value.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == "sliced" and value.dim() >= 1:
        wide = value.new_zeros((*value.shape[:-1], value.shape[-1] + _PADDING))
        wide[..., : value.shape[-1]] = value
        return wide[..., : value.shape[-1]]
    if layout == "expanded" and value.dim() >= 2 and value.shape[0]:
        return value[:1].clone().expand_as(value)
    return value.clone(memory_format=torch.contiguous_format)


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Leaves of a result with their paths: "[0]", "['loss']"; None leaves are dropped."""
    if isinstance(value, list | tuple):
        return [leaf for i, item in enumerate(value) for leaf in leaves(item, f"{path}[{i}]")]
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(item, f"{path}[{key!r}]")]
    return [] if value is None else [(path, value)]


def structure(value: Any) -> str:
    """The result's nesting in words, such as "tuple(tensor, tensor)"."""
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(structure(item) for item in value)})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{key}={structure(item)}' for key, item in value.items())})"
    return type(value).__name__


def dtype_name(value: torch.Tensor) -> str:
    """torch's name without the prefix."""
    return str(value.dtype).removeprefix("torch.")

"""Making inputs: distributions, memory layouts, and walking through results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.results import is_record
from mtmc_engine.proof.wire import Distribution, Layout
from mtmc_engine.proof.work.pattern import pattern_of

# Row padding of a slice in elements: odd, so that rows are not aligned.
_PADDING = 3
_FACTORS = {"times 3": 3.0, "times 100": 100.0, "times 0.01": 0.01, "negated": -1.0}
_OFFSETS = {torch.float32: 1000.0, torch.float64: 1000.0}
_SMALL_OFFSET = 64.0
# Largest magnitude near a half type's end: half of float16's range; for bfloat16, whose range is
# float32's, what float16 cannot hold and whose squares still can be summed in float32.
_NEAR_END = {torch.float16: 32752.0, torch.bfloat16: 2.0**40}


def distributed(value: Any, distribution: Distribution, seed: int) -> Any:
    """A floating-point tensor's contents changed as `distribution` says; others as they are.

    A tensor of exactly two different values is a mask in floating-point form and stays.
    seed: for what is drawn anew.
    """
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    if distribution == "own" or not value.numel() or _is_mask(value):
        return value
    if distribution in _FACTORS:
        return value * _FACTORS[distribution]
    if distribution == "large offset":
        return value + _OFFSETS.get(value.dtype, _SMALL_OFFSET)
    return _REWRITTEN[distribution](value, torch.Generator().manual_seed(seed))


def _is_mask(value: torch.Tensor) -> bool:
    low, high = value.amin(), value.amax()
    return value.numel() > 2 and bool(low < high) and bool(((value == low) | (value == high)).all())


def _normal(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Normal values; a constant tensor, such as a scale of ones, is varied about its value."""
    drawn = torch.randn(value.shape, generator=generator).to(value)
    first = value.flatten()[0]
    if not bool((value == first).all()):
        return drawn
    return drawn * 0.25 if first == 0 else first * (1 + 0.25 * torch.tanh(drawn))


def _constant_rows(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return value[..., :1].expand_as(value).clone() if value.dim() else value


def _zero_rows(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Every other row; of a vector its first half."""
    changed = value.clone()
    if value.dim() >= 2:
        changed[..., ::2, :] = 0
    elif value.dim():
        changed[: value.shape[0] // 2] = 0
    return changed


def _near_end(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    largest = _NEAR_END.get(value.dtype)
    top = value.abs().amax().double()
    if largest is None or not bool(torch.isfinite(top)) or not bool(top):
        return value
    return (value.double() * (largest / top)).to(value.dtype)


def _with_nan(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """NaN at one place of the first row and at the very last: other rows stay finite."""
    changed = value.clone(memory_format=torch.contiguous_format)
    flat = changed.view(-1)
    row = value.shape[-1] if value.dim() else 1
    flat[int(torch.randint(row, (), generator=generator))] = float("nan")
    flat[-1] = float("nan")
    return changed


_REWRITTEN: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "normal": _normal,
    "constant rows": _constant_rows,
    "zero rows": _zero_rows,
    "near the range's end": _near_end,
    "with NaN": _with_nan,
}


Strides = tuple[tuple[int, ...], ...]


def strides_of(values: Any) -> Strides:
    """Strides of the tensors among nested values, in order; none where all are contiguous."""
    tensors = [v for v in pytree.tree_leaves(values) if isinstance(v, torch.Tensor)]
    if all(tensor.is_contiguous() or any(s < 0 for s in tensor.stride()) for tensor in tensors):
        return ()
    return tuple(tuple(tensor.stride()) for tensor in tensors)


def ordered(shape: tuple[int, ...], order: tuple[int, ...]) -> torch.Tensor:
    """A tensor without contents whose dimensions lie in that order; () for their own."""
    return torch.empty_permuted(shape, order or tuple(range(len(shape))), device="meta")


def strided(values: list[Any], strides: Strides) -> list[Any]:
    """The same contents with those strides, each tensor in its own storage; () for contiguous."""
    if not strides:
        return laid_out(values, "contiguous")
    flat, tree = pytree.tree_flatten(values)
    given = iter(strides)
    out = [_with(v, next(given)) if isinstance(v, torch.Tensor) else v for v in flat]
    return list(pytree.tree_unflatten(out, tree))


def _with(value: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """A copy with those strides; along strides of zero all elements are the first."""
    once = [slice(0, 1) if step == 0 else slice(None) for step in strides]
    one = value[tuple(once)]
    made = torch.empty_strided(one.shape, strides, dtype=value.dtype, device=value.device)
    return made.copy_(one).expand(value.shape)


def laid_out(values: list[Any], layout: Layout) -> list[Any]:
    """The same contents in other memory layouts; each tensor has its own storage.

    values: arguments, nested or not; the result is nested in the same way.
    """
    flat, tree = pytree.tree_flatten(values)
    out = []
    first = True
    for value in flat:
        if not isinstance(value, torch.Tensor):
            out.append(value)
            continue
        chosen: Layout = layout
        if layout == "mixed":
            chosen = "transposed" if first else "contiguous"
        first = False
        out.append(_stored(value, chosen))
    return list(pytree.tree_unflatten(out, tree))


def _stored(value: torch.Tensor, layout: Layout) -> torch.Tensor:
    if layout == "transposed" and value.dim() >= 2:
        return value.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "swapped" and value.dim() >= 3:
        return value.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == "sliced" and value.dim() >= 1:
        wide = value.new_zeros((*value.shape[:-1], value.shape[-1] + _PADDING))
        wide[..., : value.shape[-1]] = value
        return wide[..., : value.shape[-1]]
    if layout == "expanded" and _expandable(value):
        return value[:1].clone().expand_as(value)
    return value.clone()  # dense, its dimensions in the order in which the file lays them


def _expandable(value: torch.Tensor) -> bool:
    """Whether one of its rows may stand for all."""
    return value.dim() >= 2 and bool(value.shape[0]) and not pattern_of(value).of_matrices


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Leaves of a result with their paths: "[0]", "['loss']", ".loss"; None leaves are dropped."""
    if isinstance(value, list | tuple):
        return [leaf for i, item in enumerate(value) for leaf in leaves(item, f"{path}[{i}]")]
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(item, f"{path}[{key!r}]")]
    if is_record(value):
        return [
            leaf
            for field in fields(value)
            for leaf in leaves(getattr(value, field.name), f"{path}.{field.name}")
        ]
    return [] if value is None else [(path, value)]


def shared_outputs(value: Any) -> tuple[str, ...]:
    """Paths of tensors that begin where an earlier one of the same result does."""
    seen: set[int] = set()
    found = []
    for path, leaf in leaves(value):
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            at = int(leaf.data_ptr())
            found += [path] if at in seen else []
            seen.add(at)
    return tuple(found)


def structure(value: Any) -> str:
    """The result's nesting in words, such as "tuple(tensor, tensor)".

    torch's own named results, such as that of `max` with a dimension, count as tuples.
    """
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, list | tuple):
        named = type(value) in torch.return_types.all_return_types
        kind = "tuple" if named else type(value).__name__
        return f"{kind}({', '.join(structure(item) for item in value)})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{key}={structure(item)}' for key, item in value.items())})"
    if is_record(value):
        parts = (f"{f.name}={structure(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({', '.join(parts)})"
    return type(value).__name__


def dtype_name(value: torch.Tensor) -> str:
    """torch's name without the prefix."""
    return str(value.dtype).removeprefix("torch.")

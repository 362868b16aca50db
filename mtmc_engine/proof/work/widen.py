"""The reference in float64: the truth that errors are measured against."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}
_CASTS = {
    torch.Tensor.float: torch.float64,
    torch.Tensor.half: torch.float64,
    torch.Tensor.bfloat16: torch.float64,
}
# Operators that return positions, with whether these come second in a pair.
_SELECTORS: dict[Any, bool] = {
    torch.argmax: False,
    torch.argmin: False,
    torch.argsort: False,
    torch.Tensor.argmax: False,
    torch.Tensor.argmin: False,
    torch.Tensor.argsort: False,
    torch.max: True,
    torch.min: True,
    torch.topk: True,
    torch.sort: True,
    torch.kthvalue: True,
    torch.median: True,
    torch.mode: True,
    torch.Tensor.max: True,
    torch.Tensor.min: True,
    torch.Tensor.topk: True,
    torch.Tensor.sort: True,
    torch.Tensor.kthvalue: True,
    torch.Tensor.median: True,
    torch.Tensor.mode: True,
}


@dataclass
class Selection:
    """Positions that an operator returned, and the values that they point to along `dim`.

    dim: None where the positions count over the flattened source.
    """

    positions: torch.Tensor
    source: torch.Tensor
    dim: int | None


@dataclass
class Widened(TorchFunctionMode):  # type: ignore[misc]
    """Within it, every request for a narrower floating-point type gets float64.

    A reference that casts to float32 on purpose (norms over bfloat16) would otherwise lose the
    very digits that the truth is for. Also notes which operators returned positions.
    """

    selections: list[Selection] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in _CASTS:
            return torch.Tensor.to(args[0], _CASTS[func])
        args, kwargs = pytree.tree_map(_wider, (tuple(args), kwargs or {}))
        result = func(*args, **kwargs)
        if func in _SELECTORS and args:
            self._note(func, args, kwargs, result)
        return result

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if _SELECTORS[func]:
            if not isinstance(result, tuple):
                return
            positions = result[1]
            default: int | None = -1
        else:
            positions = result
            default = -1 if getattr(func, "__name__", "") == "argsort" else None
        dim = kwargs.get("dim", default)
        at = 2 if getattr(func, "__name__", "") in ("topk", "kthvalue") else 1
        if "dim" not in kwargs and len(args) > at and isinstance(args[at], int):
            dim = args[at]
        self.selections.append(Selection(positions, args[0].detach().clone(), dim))

    def selection_of(self, output: torch.Tensor) -> Selection | None:
        """The selection whose positions are this output, reshaped at most."""
        for found in self.selections:
            if (
                found.positions.data_ptr() == output.data_ptr()
                and found.positions.numel() == output.numel()
            ):
                return found
        return None


def _wider(value: Any) -> Any:
    return _WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def widened(value: Any) -> Any:
    """A floating-point tensor in float64; anything else as it is."""
    if isinstance(value, torch.Tensor) and value.dtype in _WIDER:
        return value.to(_WIDER[value.dtype])
    return value


def widened_model(model: Any) -> Any:
    """A copy of a module with all floating-point state in float64; functions as they are."""
    if not isinstance(model, torch.nn.Module):
        return model
    double = copy.deepcopy(model).double()
    for module in double.modules():  # plain tensor attributes, which double() leaves
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                setattr(module, name, widened(value))
    return double


# Operators without a rounding error of their own.
_EXACT = frozenset(
    getattr(torch.ops.aten, name)
    for name in (
        *("round", "floor", "ceil", "trunc", "sign", "abs", "neg", "relu", "where"),
        *("clamp", "clamp_min", "clamp_max", "maximum", "minimum", "amax", "amin"),
    )
)
# Operators that PyTorch computes in one go and others in several steps, each of which rounds.
_COMPOSITES = (
    *("native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit"),
    *("_native_batch_norm_legit_no_training", "_native_batch_norm_legit_functional"),
    *(
        "cudnn_batch_norm",
        "_softmax",
        "_log_softmax",
        "std",
        "std_mean",
        "_fused_rms_norm",
        "var_mean",
    ),
)


class Jitter(TorchDispatchMode):  # type: ignore[misc]
    """Within it, each operator's result is moved by `relative` of itself.

    Up or down at random; without a generator all in the same direction. What operators give that
    choose or round to integers is exact and stays.

    So does every implementation round its intermediate results (D. S. Parker, Monte Carlo
    arithmetic, 1997); operators that most kernels compute in steps are taken apart. Views and
    results in place are left alone: what they share would be lost.
    """

    def __init__(self, relative: float, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.relative, self.generator = relative, generator
        known = [getattr(torch.ops.aten, name) for name in _COMPOSITES if _is_operator(name)]
        self._steps = get_decompositions(known)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in self._steps:
            with self:
                return self._steps[func](*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket in _EXACT:
            return result
        given = filter(_is_plain, pytree.tree_leaves((args, kwargs)))
        own = {value.untyped_storage().data_ptr() for value in given}

        def moved(value: Any) -> Any:
            if not _is_plain(value) or value.untyped_storage().data_ptr() in own:
                return value
            return perturbed(value, self.relative, self.generator)

        return pytree.tree_map(moved, result)


def _is_operator(name: str) -> bool:
    return hasattr(torch.ops.aten, name)


def _is_plain(value: Any) -> bool:
    """A tensor with memory of its own that can be looked at."""
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


@contextmanager
def in_float64(jitter: Jitter | None = None) -> Iterator[Widened]:
    """Runs what is inside with float64 as the default and the widest type that is ever asked.

    jitter: moves results; by default they are exact.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    mode = Widened()
    try:
        with mode, jitter or nullcontext():
            yield mode
    finally:
        torch.set_default_dtype(before)


def perturbed(value: Any, relative: float, generator: torch.Generator | None = None) -> Any:
    """A float64 tensor with each element moved by `relative` of itself.

    Up or down at random; without a generator all in the same direction.
    """
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    if generator is None:
        return value * (1 + relative)
    where = {"generator": generator, "device": generator.device}
    signs = torch.randint(0, 2, value.shape, dtype=torch.int8, **where)
    return signs.to(value).mul_(2 * relative).add_(1 - relative).mul_(value)

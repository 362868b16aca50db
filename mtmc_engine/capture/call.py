"""The call of a reference: argument names, tensors among the arguments, and their specs."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.graph import Arg, TensorSpec


@dataclass(frozen=True)
class Call:
    """How the inputs bind to the operator's parameters.

    names:   all parameters in order; fixed: values of those that are plain numbers or text.
    bound:   the given arguments by name.
    targets: for each flattened leaf of the arguments, how the operator's code names it;
    tensors: the same for the leaves that are tensors.
    """

    names: tuple[str, ...]
    fixed: dict[str, Arg]
    bound: dict[str, Any]
    targets: tuple[str, ...]
    tensors: tuple[str, ...]


def call_of(operator: Any, inputs: Sequence[Any]) -> Call:
    """Binds the inputs to the operator's parameters. Raises UsageError where they do not fit."""
    called = operator.forward if isinstance(operator, torch.nn.Module) else operator
    try:
        bound = inspect.signature(called).bind(*inputs)
    except TypeError as error:
        what = f"{len(inputs)} inputs are made"
        raise UsageError(f"The inputs do not fit the call: {error}; {what}.") from error
    given = dict(bound.arguments)
    bound.apply_defaults()
    fixed = {
        name: value
        for name, value in bound.arguments.items()
        if value is None or isinstance(value, bool | int | float | str)
    }
    leaves = [(_target(path), leaf) for path, leaf in pytree.tree_flatten_with_path(given)[0]]
    tensors = tuple(target for target, leaf in leaves if isinstance(leaf, torch.Tensor))
    targets = tuple(target for target, _ in leaves)
    return Call(tuple(bound.arguments), fixed, given, targets, tensors)


def _target(path: tuple[Any, ...]) -> str:
    """Python text for a leaf of the arguments: x, xs[0], state['h']."""
    name: str = path[0].key
    return name + "".join(map(str, path[1:]))


def tensors_of(inputs: Any) -> list[Any]:
    """The tensors among call arguments, in order; nested lists and dicts are looked into."""
    return [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]


def specs_of(inputs: Any) -> tuple[TensorSpec, ...]:
    """Specs of the tensors among call arguments, all sizes taken as fixed."""
    return tuple(spec_of(tensor) for tensor in tensors_of(inputs))


def spec_of(tensor: Any) -> TensorSpec:
    shape = tuple(int(size) for size in tensor.shape)
    return TensorSpec(shape, dtype_name(tensor.dtype), tuple(str(size) for size in shape))


def dtype_name(dtype: Any) -> str:
    """torch.float32 -> "float32"."""
    name: str = str(dtype).removeprefix("torch.")
    return name

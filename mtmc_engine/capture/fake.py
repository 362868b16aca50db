"""Fake tensors: shapes and dtypes without memory or values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from mtmc_engine.capture.call import invoke
from mtmc_engine.capture.load import Reference
from mtmc_engine.capture.order import memory_order
from mtmc_engine.core.errors import MtmcError
from mtmc_engine.core.graph import TensorSpec


def fake_mode() -> Any:
    """A mode under which an operator can be exported; real weights may take part."""
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())


def fake_inputs(reference: Reference, seed: int, mode: Any) -> list[Any]:
    """The call's arguments as fake tensors, made without memory where the file allows it.

    Raises UsageError where they cannot be built.
    """
    return fake_call(reference, seed, mode)[0]


def fake_call(reference: Reference, seed: int, mode: Any) -> tuple[list[Any], tuple[str, ...]]:
    """As `fake_inputs`, with the names of the last arguments where these are passed by name."""
    try:
        with mode:
            inputs, keywords = reference.call_inputs(seed)
    except MtmcError:  # reads values, or goes through NumPy
        inputs, keywords = reference.call_inputs(seed)
    return list(pytree.tree_map(lambda leaf: _fake(mode, leaf), inputs)), keywords


def _fake(mode: Any, leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor) or isinstance(leaf, FakeTensor):
        return leaf
    return mode.from_tensor(leaf, static_shapes=True)


def faked(mode: Any, inputs: Sequence[Any], specs: Sequence[TensorSpec]) -> list[Any]:
    """Fake call arguments with each tensor in the shape of its spec; other values as they are."""
    shapes = iter(specs)

    def empty(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        shape = next(shapes).shape
        strides = [int(stride) for stride in leaf.stride()]
        order = memory_order([int(size) for size in leaf.shape], strides)
        return torch.empty_permuted(shape, order or tuple(range(len(shape))), dtype=leaf.dtype)

    with mode:
        return list(pytree.tree_map(empty, list(inputs)))


class _Counting(TorchDispatchMode):  # type: ignore[misc]
    """Counts the elements of all results."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        leaves = pytree.tree_leaves(result)
        self.elements += sum(t.numel() for t in leaves if isinstance(t, torch.Tensor))
        return result


def elements_made(
    operator: Any, inputs: Sequence[Any], mode: Any, keywords: Sequence[str] = ()
) -> int:
    """Elements of all results of one call on fake inputs, views included. Raises what it raises."""
    with mode, _Counting() as counting, torch.no_grad():
        invoke(operator, inputs, keywords)
    made: int = counting.elements
    return made


def parameter_elements(reference: Reference, seed: int, init_args: dict[int, int]) -> int | None:
    """Elements of all parameters and buffers, without making them; None where that fails."""
    if reference.form == "function":
        return 0
    try:
        with fake_mode():
            model: Any = reference.build(seed, init_args)
    except MtmcError:  # the constructor reads values
        return None
    return sum(int(t.numel()) for t in [*model.parameters(), *model.buffers()])

"""Contents of a case's inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.draw import resized
from mtmc_engine.capture.load import Reference
from mtmc_engine.capture.order import memory_order
from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.proof.wire import Build, Case
from mtmc_engine.proof.work.pattern import pattern_of
from mtmc_engine.proof.work.tensors import Strides, distributed, dtype_name, ordered, strides_of


class Draw:
    """Draws inputs from the file's own function, at any shape."""

    def __init__(self, reference: Reference, build: Build) -> None:
        self.reference, self.build = reference, build
        self._pattern = reference.inputs(build.seed)
        flat = pytree.tree_leaves(self._pattern)
        tensors = [value for value in flat if isinstance(value, torch.Tensor)]
        self._shapes = tuple(tuple(value.shape) for value in tensors)
        self._dtypes = tuple(dtype_name(value) for value in tensors)
        self._orders = [memory_order(value.shape, value.stride()) for value in tensors]
        self._patterns = [pattern_of(value) for value in flat]

    def inputs(self, case: Case) -> list[Any]:
        """Call arguments of a case, nested as the file makes them: contiguous tensors on the
        build's device, others as made.

        Shapes that the file does not make itself are filled with elements of those it does.
        Triangular, symmetric and ascending inputs stay so.
        """
        if (case.shapes, case.dtypes) == (self._shapes, self._dtypes):
            values = self._own(case.seed)
        else:
            pairs = zip(case.shapes, case.dtypes, strict=True)
            specs = [TensorSpec(shape, dtype) for shape, dtype in pairs]
            values = resized(self._pattern, specs, case.seed)
        flat, tree = pytree.tree_flatten(values)
        flat = [self._drawn(case, place, value) for place, value in enumerate(flat)]
        return list(pytree.tree_unflatten(flat, tree))

    def strides(self, case: Case) -> Strides:
        """How the file itself lays these inputs out; () for contiguous and for other layouts.

        At other shapes than its own the dimensions lie in the same order, close together.
        """
        if case.layout != "contiguous":
            return ()
        if case.own and case.shapes == self._shapes:
            return strides_of(self._pattern)
        return strides_of([ordered(*both) for both in zip(case.shapes, self._orders, strict=True)])

    def _drawn(self, case: Case, place: int, value: Any) -> Any:
        placed = _placed(value, self.build.device)
        made = distributed(placed, case.distribution, case.seed + place)
        return self._patterns[place].restored(made) if isinstance(made, torch.Tensor) else made

    def _own(self, seed: int) -> list[Any]:
        return self._pattern if seed == self.build.seed else self.reference.inputs(seed)


def _placed(value: Any, device: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to(device).clone()

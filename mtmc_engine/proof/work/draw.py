"""Contents of a case's inputs."""

from __future__ import annotations

from typing import Any

import torch

from mtmc_engine.capture.load import Reference, resized
from mtmc_engine.core.task import TensorSpec
from mtmc_engine.proof.wire import Build, Case
from mtmc_engine.proof.work.tensors import distributed, dtype_name


class Draw:
    """Draws inputs from the file's own function, at any shape."""

    def __init__(self, reference: Reference, build: Build) -> None:
        self.reference, self.build = reference, build
        self._made: dict[int, list[Any]] = {}

    def inputs(self, case: Case) -> list[Any]:
        """Call arguments of a case: contiguous tensors on the build's device, others as made."""
        values = self._own(case.seed)
        shapes = [tuple(v.shape) for v in values if isinstance(v, torch.Tensor)]
        dtypes = [dtype_name(v) for v in values if isinstance(v, torch.Tensor)]
        if tuple(shapes) != case.shapes or tuple(dtypes) != case.dtypes:
            specs = [TensorSpec(s, d) for s, d in zip(case.shapes, case.dtypes, strict=True)]
            values = resized(values, specs, case.seed)
        values = [distributed(value, case.distribution) for value in values]
        return [_placed(value, self.build.device) for value in values]

    def _own(self, seed: int) -> list[Any]:
        if seed not in self._made:
            self._made = {seed: self.reference.inputs(seed)}
        return self._made[seed]


def _placed(value: Any, device: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to(device).clone(memory_format=torch.contiguous_format)

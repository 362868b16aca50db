"""How far results move when inputs and parameters are rounded once more: their conditioning."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.proof.tolerance import EPSILON, TF32_EPSILON, Norms, arithmetic
from mtmc_engine.proof.work.norms import distance
from mtmc_engine.proof.work.tensors import dtype_name
from mtmc_engine.proof.work.widen import Jitter, perturbed, widened

# Condition errors of small outputs are drawn several times: one draw may be near zero by luck.
_SMALL = 4096
_DRAWS = 3
# How far inputs and results are moved. More than one, since an honest sum is the exact sum of terms
# that are moved by a few: for a result that is quadratic in rounding, such as the variance of equal
# numbers, the square of that counts.
HALF_ULPS = 4.0
# Integers computed from floats: a threshold within so many half ulp may fall either way.
_SIDE_ULPS = 16


@dataclass(frozen=True)
class Nudge:
    """Moves floating-point tensors, in float64, by HALF_ULPS half ulp of the arithmetic.

    seed: of the directions, up or down at random. side: where it is not 0, by so many half ulp,
    all in that direction, so that every threshold nearby is crossed. inside: the side is that of
    the operators' results in place of the inputs, for thresholds that move along with the inputs.
    """

    tf32: bool
    seed: int
    side: int = 0
    inside: bool = False

    def of(self, value: Any) -> Any:
        """A floating-point tensor in float64, moved; anything else as it is."""
        if not is_float(value):
            return value
        kind = arithmetic(dtype_name(value))
        unit = TF32_EPSILON if self.tf32 and kind == "float32" else EPSILON[kind]
        if self.inside:
            return widened(value)
        if self.side:
            return perturbed(widened(value), self.side * unit / 2)
        generator = torch.Generator(value.device).manual_seed(self.seed + value.numel())
        return perturbed(widened(value), HALF_ULPS * unit / 2, generator)

    def jitter(self, inputs: list[Any]) -> Jitter | None:
        """Moves what operators return, too, by as much; not TF32's, which is for factors only."""
        if self.side and not self.inside:
            return None
        floats = [value for value in pytree.tree_leaves(inputs) if is_float(value)]
        kinds = {arithmetic(dtype_name(value)) for value in floats} or {"float32"}
        unit = max(EPSILON[kind] for kind in kinds)
        if self.inside:
            return Jitter(self.side * unit / 2)
        device = floats[0].device if floats else torch.device("cpu")
        return Jitter(HALF_ULPS * unit / 2, torch.Generator(device).manual_seed(self.seed + 1))

    def model(self, double: Any, model: Any) -> Any:
        """A copy of `double` with all floating-point state of `model`, moved."""
        if not isinstance(double, torch.nn.Module) or self.side:
            return double
        copied = copy.deepcopy(double)
        narrow = model.state_dict()
        with torch.no_grad():
            for name, value in copied.state_dict().items():
                if is_float(value) and is_float(narrow[name]):
                    value.copy_(self.of(narrow[name]))
        return copied


class Moved:
    """What nudges did to results.

    norms: of the largest change, by path of a floating-point output. ranges: lowest and highest
    value of each element of an integer or boolean output.
    """

    def __init__(self, exact: dict[str, Any]) -> None:
        self._floats = {path: value for path, value in exact.items() if is_float(value)}
        tensors = {path: v for path, v in exact.items() if isinstance(v, torch.Tensor)}
        self._whole = {path: v for path, v in tensors.items() if path not in self._floats}
        self.norms = dict.fromkeys(self._floats, Norms(0.0, 0.0))
        self.ranges: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    @property
    def needed(self) -> bool:
        return bool(self._floats or self._whole)

    def nudges(self, seed: int, tf32: bool) -> Iterator[Nudge]:
        """Those that should be tried, one after the other."""
        values = [*self._floats.values(), *self._whole.values()]
        small = all(value.numel() <= _SMALL for value in values)
        for draw in range(_DRAWS if small else 1):
            yield Nudge(tf32, seed + 7919 * (draw + 1))
        if self._whole:
            for side in (-_SIDE_ULPS, _SIDE_ULPS):
                yield Nudge(tf32, 0, side)
                yield Nudge(tf32, 0, side, inside=True)

    def note(self, nudge: Nudge, outputs: list[tuple[str, Any]]) -> None:
        """Takes the results of a nudged call in."""
        for path, value in outputs:
            first = self._whole.get(path)
            if first is not None and value.shape == first.shape:
                low, high = self.ranges.get(path, (first, first))
                self.ranges[path] = torch.minimum(low, value), torch.maximum(high, value)
            elif path in self._floats and not nudge.side:
                self._move(path, value)

    def _move(self, path: str, value: torch.Tensor) -> None:
        if value.shape != self._floats[path].shape:
            return
        off, known = distance(value, self._floats[path]), self.norms[path]
        self.norms[path] = Norms(max(known.largest, off.largest), max(known.rms, off.rms))


def is_float(value: Any) -> bool:
    """A floating-point or complex tensor."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())

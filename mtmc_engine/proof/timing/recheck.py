"""Outputs of timed calls compared with the truth, in the reference's process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from mtmc_engine.capture.call import invoke
from mtmc_engine.proof.timing.contents import Contents
from mtmc_engine.proof.timing.timer import Rechecked
from mtmc_engine.proof.tolerance import EPSILON, bound
from mtmc_engine.proof.wire import Build
from mtmc_engine.proof.work.compare import Comparison, compare_float, compare_index
from mtmc_engine.proof.work.exchange import take
from mtmc_engine.proof.work.moved import Moved
from mtmc_engine.proof.work.norms import distance, size_of
from mtmc_engine.proof.work.tensors import dtype_name, leaves
from mtmc_engine.proof.work.widen import Selection, in_float64, widened, widened_model

# Part of an integer or boolean output that may differ: what is rounded may fall either way.
_MOST_WHOLE = 0.02
# Time that the truths may take; calls that are left then are not compared.
_BUDGET_S = 3.0


@dataclass(frozen=True)
class Kept:
    """A copied output: of which input set, and the secret that its contents were drawn by."""

    set: int
    secret: str
    leaves: list[Any]


def compare_kept(
    kept: Sequence[Mapping[str, Any]],
    folder: Path,
    contents: Mapping[int, Contents],
    model: Any,
    build: Build,
) -> Rechecked:
    """kept: set, secret and file name of each output. model: the reference, as it was built.

    An output that is right for other contents than it was asked for is NUMERIC; where every one
    is wrong, each in its own way, a state has drifted.
    """
    witness = _Witness(model, build)
    wrong: list[str] = []
    seen: list[list[Any]] = []
    stale = False
    until = monotonic() + _BUDGET_S
    count = 0
    for one in kept:
        if monotonic() > until:
            break
        given = take(folder, one["name"], build.device)
        found = witness.wrong(contents[one["set"]], one["secret"], given)
        if found:
            wrong.append(found)
            stale = stale or any(_equal(given, earlier) for earlier in seen)
        seen.append(given)
        count += 1
    if not wrong:
        return Rechecked(count)
    drifted = len(wrong) == count and count > 1 and not stale
    verdict = "STATE_DRIFT" if drifted else "NUMERIC"
    how = "it returns an earlier result: " if stale else ""
    what = "all outputs" if len(wrong) == count else f"{len(wrong)} of {count} outputs"
    sentence = f"{what} of timed calls are wrong: {how}{wrong[0]}"
    return Rechecked(count, verdict, sentence, {"wrong_calls": len(wrong), "calls": count})


class _Witness:
    """The reference in its own precision and in float64."""

    def __init__(self, model: Any, build: Build) -> None:
        self.model, self.build = model, build
        self.double = widened_model(model)

    def wrong(self, contents: Contents, secret: str, given: list[Any]) -> str:
        """What is wrong with the leaves of a result, "" where nothing is."""
        live = [v.clone() if isinstance(v, torch.Tensor) else v for v in contents.live]
        contents.refresh(secret, live)
        # Programs may change their inputs: each call gets its own.
        wide = _arguments(contents, [widened(value) for value in live])
        own = self._leaves(self.model, _arguments(contents, live))
        with in_float64() as mode:
            true = self._leaves(self.double, wide)
        if len(given) != len(own):
            return f"it returns {len(given)} values, not {len(own)}"
        moved = self._moved(contents, live, true)
        for number, (a, r, t) in enumerate(zip(given, own, true, strict=True)):
            name = f"output {number}" if len(own) > 1 else "the output"
            chosen = mode.selection_of(t) if isinstance(t, torch.Tensor) else None
            found = _form(name, a, r) or (
                _compared(name, a, r, t, moved.get(str(number)))
                if chosen is None
                else _placed(name, a, t, chosen)
            )
            if found:
                return found
        return ""

    def _moved(self, contents: Contents, live: list[Any], true: list[Any]) -> dict[str, Any]:
        moved = Moved({str(number): value for number, value in enumerate(true)})
        for nudge in moved.nudges(1, self.build.tf32):
            if nudge.side:
                continue
            arguments = _arguments(contents, [nudge.of(value) for value in live])
            with in_float64(nudge.jitter(live)):
                values = self._leaves(nudge.model(self.double, self.model), arguments)
            moved.note(nudge, [(str(number), value) for number, value in enumerate(values)])
        return moved.norms

    def _leaves(self, model: Any, arguments: list[Any]) -> list[Any]:
        torch.manual_seed(self.build.seed)
        with torch.no_grad():
            return [leaf for _, leaf in leaves(invoke(model, arguments, self.build.keywords))]


def _arguments(contents: Contents, live: list[Any]) -> list[Any]:
    copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in live]
    return contents.arguments(copies)


def _form(name: str, actual: Any, result: Any) -> str:
    """What is wrong with the shape or type of an output, "" where nothing is."""
    if not isinstance(result, torch.Tensor) or not isinstance(actual, torch.Tensor):
        return ""
    if actual.shape != result.shape or actual.dtype != result.dtype:
        return f"{name} has shape {list(actual.shape)}, not {list(result.shape)}"
    return ""


def _compared(name: str, actual: Any, result: Any, truth: Any, condition: Any) -> str:
    if not isinstance(result, torch.Tensor) or not isinstance(actual, torch.Tensor):
        return ""
    dtype = dtype_name(result)
    if dtype in EPSILON and condition is not None:
        limits = bound(dtype, size_of(truth), distance(result, truth), condition)
        found = compare_float(actual, result, truth, limits, False)
        return _told(name, found) if found.verdict else ""
    if not actual.numel():
        return ""
    differ = float((actual != result).double().mean())
    return f"{differ:.0%} of {name} differ" if differ > _MOST_WHOLE else ""


def _placed(name: str, actual: Any, truth: Any, chosen: Selection) -> str:
    """Positions, by the values that they point to: ties may fall either way."""
    if not isinstance(actual, torch.Tensor) or not actual.numel():
        return ""
    found = compare_index(actual, truth, chosen.source, chosen.dim)
    return _told(name, found) if found.verdict else ""


def _told(name: str, found: Comparison) -> str:
    return f"{name} at {list(found.index)} is {found.actual}, it should be {found.expected}"


def _equal(one: list[Any], other: list[Any]) -> bool:
    pairs = list(zip(one, other, strict=False))
    return bool(pairs) and all(
        isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and torch.equal(a, b)
        for a, b in pairs
    )

"""Weak tasks: operators whose result proves little, since something trivial would pass for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from mtmc_engine.proof.tolerance import bound
from mtmc_engine.proof.wire import Case, OutputFacts
from mtmc_engine.proof.work.compare import compare_float
from mtmc_engine.proof.work.norms import distance, size_of

# Results below this are zero to an absolute tolerance as it is often used.
_TINY = 1e-4
# Two results in float64 are the same where they differ by less, relative to their size.
_SAME = 1e-9


@dataclass
class Weaknesses:
    """What is found over the cases of a task."""

    sentences: list[str] = field(default_factory=list)
    _earlier: dict[Any, list[torch.Tensor]] = field(default_factory=dict)
    _same: list[bool] = field(default_factory=list)

    @property
    def independent(self) -> bool:
        """Whether other contents of the same shapes have given the same result, each time."""
        return bool(self._same) and all(self._same)

    def compare_with_earlier(self, case: Case, truths: list[torch.Tensor]) -> None:
        """Notes whether other contents of the same shapes give other results, in float64."""
        earlier = self._earlier.setdefault(case.shapes, truths)
        if earlier is not truths and truths:
            self._same.append(all(map(_close, earlier, truths)))

    def look(
        self, facts: list[OutputFacts], outputs: list[dict[str, Any]], inputs: list[Any]
    ) -> None:
        """Whether zeros, the mean or an input would pass as one of the outputs.

        outputs: entries with "result" and "truth". inputs: leaves of the arguments.
        """
        for fact, entry in zip(facts, outputs, strict=True):
            if fact.kind != "float" or not entry["truth"].numel():
                continue
            name = f"output {fact.path}" if fact.path else "the output"
            for words, stand_in in _stand_ins(entry["result"], entry["truth"], inputs):
                if _passes(fact, entry, stand_in):
                    self._say(f"weak task: {words} would pass as {name}")
            if 0 < fact.scale.largest < _TINY:
                self._say(
                    f"{name} is at most {fact.scale.largest:.1e}: an absolute tolerance means "
                    "nothing here, errors are judged relative to its size"
                )

    def _say(self, sentence: str) -> None:
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    def notes(self) -> list[str]:
        """One sentence for each weakness."""
        if self.independent:
            same = "the output does not depend on the inputs: it is the same for other contents"
            return [f"weak task: {same}", *self.sentences]
        return list(self.sentences)


def _stand_ins(
    result: torch.Tensor, truth: torch.Tensor, inputs: list[Any]
) -> list[tuple[str, torch.Tensor]]:
    """What somebody might return who has not done the work, in the result's form."""
    found = [("zeros", torch.zeros_like(result))]
    if truth.numel() > 1:
        found.append(("its mean", torch.zeros_like(truth) + truth.mean()))
    for place, value in enumerate(inputs):
        fits = isinstance(value, torch.Tensor) and value.shape == result.shape
        if fits and value.is_floating_point():
            found.append((f"input {place} itself", value))
    return found


def _passes(fact: OutputFacts, entry: dict[str, Any], stand_in: torch.Tensor) -> bool:
    limits = bound(fact.dtype, fact.scale, fact.reference, fact.condition)
    return not compare_float(stand_in, entry["result"], entry["truth"], limits, False).verdict


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal but for the rounding of float64."""
    return distance(one, other).largest <= _SAME * size_of(one).largest

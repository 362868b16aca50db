"""The programs of a contest, built in the timing process with the same weights."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from mtmc_engine.capture.load import Reference
from mtmc_engine.proof.timing.timer import Contest, Entrant
from mtmc_engine.proof.wire import CandidateCode
from mtmc_engine.proof.work.build import (
    build_candidate,
    find_entry,
    how_weights_pass,
    import_candidate,
)

Program = Callable[..., Any]


class TooSlow(Exception):
    """Something did not finish within its budget."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TooSlow where what is inside takes longer."""

    def ring(*_: Any) -> None:
        raise TooSlow(f"it took longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def build_entrant(entrant: Entrant, contest: Contest, reference: Reference, model: Any) -> Program:
    """Ready to be called. Whatever the code of the entrant raises passes through."""
    if entrant.kind == "eager":
        eager: Program = model
        return eager
    if entrant.kind == "torch.compile":
        from torch._inductor import config

        config.compile_threads = 1  # no pool of processes beside a timing
        compiled: Program = torch.compile(model)
        return compiled
    assert entrant.code is not None
    return _from_source(entrant.code, contest, reference, model)


def _from_source(
    code: CandidateCode, contest: Contest, reference: Reference, model: Any
) -> Program:
    entry = find_entry(import_candidate(code), reference)
    build = contest.build
    weights = code.weights
    if not weights and hasattr(entry, "from_reference"):
        weights = "from_reference"
    if not weights:
        made = build_candidate(entry, reference, build, model, "seed")
        weights = how_weights_pass(entry, made, model)
    program: Program = build_candidate(entry, reference, build, model, weights)
    return program

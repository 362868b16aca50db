"""The programs of a contest, built in their own processes with the same weights."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from mtmc_engine.capture.load import Reference
from mtmc_engine.proof.timing.timer import Entrant
from mtmc_engine.proof.wire import Build, CandidateCode
from mtmc_engine.proof.work.build import (
    build_candidate,
    find_entry,
    how_weights_pass,
    import_candidate,
    source_of,
    token_of,
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


def build_entrant(
    entrant: Entrant, build: Build, reference: Reference, model: Any
) -> tuple[Program, str]:
    """The program, ready to be called, and the token of its source, "" for the reference's own.

    Whatever the code of the entrant raises passes through.
    """
    if entrant.kind == "eager":
        return model, ""
    if entrant.kind == "torch.compile":
        from torch._inductor import config

        config.compile_threads = 1  # no pool of processes beside a timing
        return torch.compile(model), ""
    assert entrant.code is not None
    source = source_of(entrant.code)
    token = token_of(source)
    return _from_source(entrant.code, source, build, reference, model), token


def _from_source(
    code: CandidateCode, source: bytes, build: Build, reference: Reference, model: Any
) -> Program:
    entry = find_entry(import_candidate(code, source), reference)
    weights = code.weights
    if not weights and hasattr(entry, "from_reference"):
        weights = "from_reference"
    if not weights:
        made = build_candidate(entry, reference, build, model, "seed")
        weights = how_weights_pass(entry, made, model)
    program: Program = build_candidate(entry, reference, build, model, weights)
    return program

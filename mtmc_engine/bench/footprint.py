"""The job that sees what an answer costs beside its time: memory, and its very first call."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import msgspec
import torch
from torch.utils import _pytree as pytree

from mtmc_engine.bench.answer import Footprint
from mtmc_engine.proof.timing.lock import among_others
from mtmc_engine.proof.wire import Build, CandidateCode
from mtmc_engine.proof.work.build import (
    build_candidate,
    build_reference,
    find_entry,
    import_candidate,
    open_reference,
)


def measure(arguments: dict[str, Any], report: Callable[[Any], None]) -> Footprint:
    """Job: arguments {"build": Build, "code": CandidateCode, "lock"}. Needs a GPU."""
    build = msgspec.convert(arguments["build"], Build)
    code = msgspec.convert(arguments["code"], CandidateCode)
    with among_others(arguments["lock"]), torch.no_grad():
        reference = open_reference(build)
        model = build_reference(reference, build)
        entry = find_entry(import_candidate(code), reference)
        program = build_candidate(entry, reference, build, model, "from_reference")
        inputs = pytree.tree_map(
            lambda leaf: leaf.to(build.device) if isinstance(leaf, torch.Tensor) else leaf,
            reference.inputs(build.seed),
        )
        report({"stage": "call"})
        return _measured(lambda: program(*inputs))


def _measured(call: Callable[[], Any]) -> Footprint:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    began = perf_counter()
    call()
    torch.cuda.synchronize()
    first = perf_counter() - began
    peak = torch.cuda.max_memory_allocated() - before
    returned = []
    for _ in range(10):
        began = perf_counter()
        call()
        returned.append(perf_counter() - began)
        torch.cuda.synchronize()
    return Footprint(peak, first * 1e6, min(returned) * 1e6)

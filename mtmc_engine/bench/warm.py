"""The job that has torch.compile make its kernels of a reference before it is timed.

What it makes lies in the folder that the timing's own process reads, so that half a minute of
compilation is spent while another task holds the GPU's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import torch
from torch.utils import _pytree as pytree

from mtmc_engine.proof.wire import Build
from mtmc_engine.proof.work.build import build_reference, open_reference, randomise


def compile_reference(arguments: dict[str, Any], report: Callable[[Any], None]) -> None:
    """Job: arguments {"build": Build}. Calls the compiled reference once."""
    build = msgspec.convert(arguments["build"], Build)
    from torch._inductor import config

    config.compile_threads = 1
    reference = open_reference(build)
    model = build_reference(reference, build)
    if build.randomise:
        randomise(model, build.seed)
    report({"stage": "compile"})
    inputs = pytree.tree_map(
        lambda leaf: leaf.to(build.device) if isinstance(leaf, torch.Tensor) else leaf,
        reference.inputs(build.seed),
    )
    with torch.no_grad():
        torch.compile(model)(*inputs)
    if build.device.startswith("cuda"):
        torch.cuda.synchronize()

"""The capture job: the user's file becomes a Task. Runs in a disposable child with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from mtmc_engine.capture.call import call_of, specs_of
from mtmc_engine.capture.export_graph import Exporter
from mtmc_engine.capture.load import load_reference
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.task import InputSet, Task


def open_task(arguments: dict[str, Any], report: Callable[[Any], None]) -> Task:
    """Opens the user's file.

    arguments: {"file", "reference": name or None, "overrides": policy keys, "seed",
    "target_card": a DeviceCard}. Raises UsageError and ReferenceFailed; the engine reads the
    job's ending with `client.task_of`.
    """
    seed = arguments.get("seed", 0)
    reference = load_reference(
        arguments["file"], arguments.get("reference"), None, arguments.get("overrides") or {}
    )
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
    inputs = reference.inputs(seed)
    operator = reference.build(seed)
    fake = [_fake(mode, value) for value in inputs]
    call = call_of(operator, fake)
    export = Exporter(operator, fake, mode, str(reference.source.path)).export()
    return Task(
        file=str(reference.source.path),
        digest=reference.source.digest,
        name=reference.source.path.stem,
        module=reference.module.__name__,
        form=reference.form,
        entry=reference.entry,
        policy=reference.policy,
        device=msgspec.convert(arguments["target_card"], DeviceCard),
        inputs=(InputSet("declared", specs_of(inputs)),),
        graph=export.graph,
        arguments=call.names,
        fixed=call.fixed,
        vary=export.vary,
        tf32=torch.backends.cuda.matmul.allow_tf32,
    )


def _fake(mode: Any, value: Any) -> Any:
    return mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value

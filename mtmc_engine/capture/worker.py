"""The capture job: the user's file becomes a Task. Runs in a disposable child with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import torch

from mtmc_engine.capture.declared import label_of
from mtmc_engine.capture.export_graph import Export
from mtmc_engine.capture.load import load_reference
from mtmc_engine.capture.preflight import preflight
from mtmc_engine.capture.subject import Subject, subject_of
from mtmc_engine.capture.twin import Original, is_small, twin_of
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.core.task import InputSet, Task, Twin


def open_task(arguments: dict[str, Any], report: Callable[[Any], None]) -> Task:
    """Opens the user's file.

    arguments: {"file", "reference": name or None, "overrides": policy keys, "seed",
    "target_card": a DeviceCard}. report: told each stage, as {"stage": "export"}. Raises
    UsageError and ReferenceFailed; the engine reads the job's ending with `client.task_of`.
    """
    seed = int(arguments.get("seed") or 0)
    card = msgspec.convert(arguments["target_card"], DeviceCard)
    report({"stage": "load"})
    reference = load_reference(
        arguments["file"], arguments.get("reference"), overrides=arguments.get("overrides")
    )
    tf32 = _allows_tf32()
    subject = subject_of(reference, seed)
    report({"stage": "export"})
    export = subject.export()
    subject.check_sets()
    report({"stage": "twin"})
    twin = _twin(subject, export)
    report({"stage": "run"})
    facts = preflight(subject, export, twin, on_gpu=card.present and torch.cuda.is_available())
    dims = [i.spec.dims for i in export.graph.inputs if i.kind == "input"]
    call = subject.call
    return Task(
        file=str(reference.source.path),
        digest=reference.source.digest,
        name=reference.source.path.stem,
        module=reference.module.__name__,
        form=reference.form,
        entry=reference.entry,
        policy=reference.policy,
        device=card,
        inputs=tuple(_input_set(specs, dims) for specs in subject.sets),
        graph=export.graph,
        arguments=call.names,
        fixed=call.fixed,
        vary=export.vary,
        random=facts.random,
        twin=twin,
        tf32=tf32,
        notes=facts.notes,
        program=reference.source.text if reference.launcher else "",
        launcher=reference.launcher,
        reference=reference.home_file,
        parameters=call.parameters,
        keywords=subject.keywords,
    )


def _allows_tf32() -> bool:
    """Torch's TF32 switch for matmuls, whichever of its interfaces set it."""
    chosen = str(torch.backends.cuda.matmul.fp32_precision)
    return (str(torch.backends.fp32_precision) if chosen == "none" else chosen) == "tf32"


def _twin(subject: Subject, export: Export) -> Twin | None:
    if is_small(export.graph):
        return None
    return twin_of(
        Original(
            subject.reference,
            subject.inputs,
            export.graph,
            subject.allowed,
            subject.seed,
            subject.keywords,
        )
    )


def _input_set(specs: tuple[TensorSpec, ...], dims: list[tuple[str, ...]]) -> InputSet:
    tensors = tuple(
        TensorSpec(spec.shape, spec.dtype, tuple(map(_dim, names, spec.shape)), spec.order)
        for spec, names in zip(specs, dims, strict=True)
    )
    return InputSet(label_of([spec.shape for spec in specs]), tensors)


def _dim(name: str, size: int) -> str:
    return str(size) if name.isdigit() else name

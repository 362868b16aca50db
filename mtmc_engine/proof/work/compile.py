"""The compiler's process: imports the candidate and compiles each kernel that it launches."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from mtmc_engine.capture.call import invoke
from mtmc_engine.capture.load import Reference
from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.proof.wire import Build, CandidateCode, Compiled, Target, Trouble
from mtmc_engine.proof.work.build import (
    build_candidate,
    build_reference,
    derived_tensors,
    find_entry,
    how_weights_pass,
    import_candidate,
    open_reference,
)
from mtmc_engine.proof.work.drivers import pretend
from mtmc_engine.proof.work.here import cuda_is
from mtmc_engine.proof.work.record import LaunchRecorder
from mtmc_engine.proof.work.state import GlobalState
from mtmc_engine.proof.work.trouble import trouble


class Request(msgspec.Struct, frozen=True):
    """build: at declared sizes, on "cpu". specs: the call's tensors, one tuple per input set."""

    build: Build
    code: CandidateCode
    target: Target
    specs: tuple[tuple[TensorSpec, ...], ...]


def compile_ahead(arguments: dict[str, Any], report: Callable[[Any], None]) -> Compiled:
    """Job: arguments as in Request; reports {"stage": …} as it goes.

    The candidate's forward runs on tensors without memory; a launch compiles and does not run.
    """
    request = msgspec.convert(arguments, Request)
    pretend(request.target.card, request.target.configurations)
    reference = open_reference(request.build)
    model = build_reference(reference, request.build)
    before = GlobalState()
    report({"stage": "import"})
    with cuda_is("cpu"):
        try:
            module = import_candidate(request.code)
        except BaseException as error:
            return Compiled(trouble(error, "import", request.code))
        entry = find_entry(module, reference)
        if entry is None:
            return Compiled(_not_found(reference))
        report({"stage": "build"})
        try:
            made, weights = _built(entry, reference, request.build, model)
        except BaseException as error:
            return Compiled(trouble(error, "build", request.code))
    recorder = LaunchRecorder(request.target.card, lambda v: report({"stage": "compile", **v}))
    recorder.install()
    derived = derived_tensors(made)
    failed, why = _launches(request, reference, made, recorder)
    return Compiled(
        failed,
        weights,
        derived,
        ahead=not why,
        why=why,
        launches=tuple(recorder.launches),
        state_changes=before.changes(),
    )


def _not_found(reference: Reference) -> Trouble:
    names = "ModelNew" if reference.form == "module" else f"ModelNew or {reference.entry}"
    if reference.launcher not in ("", "ModelNew"):
        names = f"ModelNew or {reference.launcher}"
    return Trouble("find", "NameError", f"the candidate defines no {names}")


def _built(entry: Any, reference: Reference, build: Build, model: Any) -> tuple[Any, str]:
    """The candidate and how the reference's weights get into it."""
    if hasattr(entry, "from_reference"):
        made = build_candidate(entry, reference, build, model, "from_reference")
        return made, "from_reference"
    made = build_candidate(entry, reference, build, model, "seed")
    return made, how_weights_pass(entry, made, model)


def _launches(
    request: Request, reference: Reference, made: Any, recorder: LaunchRecorder
) -> tuple[Trouble | None, str]:
    """Runs the candidate without memory; else with it. What failed, and why not ahead."""
    why = ""
    call = _on_meta(made)
    for specs in request.specs:
        for device in ("meta", "cpu"):
            candidate = call if device == "meta" else made
            try:
                arguments = _arguments(reference, request.build, specs, device)
                with torch.no_grad(), cuda_is(device):
                    invoke(candidate, arguments, request.build.keywords)
                why = ""
                break
            except BaseException as error:
                if any(error is failure for failure in recorder.failures):
                    return trouble(error, "compile", request.code), ""
                why = f"{type(error).__name__}: {str(error).strip()[:300]}"
                if _too_large(specs):
                    break
        if why:
            return None, why
    return None, ""


def _too_large(specs: tuple[TensorSpec, ...]) -> bool:
    return sum(spec.nbytes for spec in specs) > 1 << 30


def _arguments(
    reference: Reference, build: Build, specs: tuple[TensorSpec, ...], device: str
) -> list[Any]:
    """The call's arguments with tensors of the declared shapes on `device`."""
    if device == "meta":
        with torch.device("meta"):
            made = reference.inputs(build.seed)
    else:
        made = reference.inputs(build.seed)
    tensors = iter(specs)
    arguments = []
    for value in made:
        if isinstance(value, torch.Tensor):
            spec = next(tensors)
            dtype = getattr(torch, spec.dtype)
            if tuple(value.shape) != spec.shape or value.dtype != dtype:
                value = torch.zeros(spec.shape, dtype=dtype, device=device)  # noqa: PLW2901
            arguments.append(value.to(device))
        else:
            arguments.append(value)
    return arguments


def _on_meta(made: Any) -> Any:
    """A module's copy without memory; a function as it is."""
    if not isinstance(made, torch.nn.Module):
        return made
    memo: dict[int, Any] = {}
    for module in made.modules():
        for tensors in (module._parameters, module._buffers, vars(module)):
            for value in tensors.values():
                if isinstance(value, torch.Tensor):
                    memo[id(value)] = _bare(value)
    return copy.deepcopy(made, memo)


def _bare(value: torch.Tensor) -> torch.Tensor:
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(value.detach().to("meta"), value.requires_grad)
    return value.detach().to("meta")

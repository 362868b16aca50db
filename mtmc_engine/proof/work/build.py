"""Building the reference and the candidate with the same weights."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from mtmc_engine.capture.load import Reference, load_reference
from mtmc_engine.proof.wire import Build, CandidateCode


def open_reference(build: Build) -> Reference:
    """The user's file, with the build's constants. Raises UsageError as load_reference does.

    Under the policy "tf32" torch's switches are set for this process, whoever computes in it.
    """
    reference = load_reference(build.file, build.entry or None, build.constants or None)
    if build.policy.precision == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
    return reference


def build_reference(reference: Reference, build: Build, device: str | None = None) -> Any:
    """The operator on the build's device, or on `device`. Raises ReferenceFailed."""
    return reference.build(build.seed, build.init_args or None, device or build.device)


def randomise(model: Any, seed: int) -> None:
    """Moves every constant floating-point parameter and buffer away from its initial value.

    A scale of one and a bias of zero hide errors: ones become uniform in [0.5, 1.5), zeros normal
    with deviation 0.25, any other constant is multiplied by uniform [0.5, 1.5). Weights that vary
    already stay.
    """
    if not isinstance(model, torch.nn.Module):
        return
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.state_dict().values():
            if not value.is_floating_point() or not value.numel():
                continue
            first = value.flatten()[0]
            if not bool((value == first).all()):
                continue
            if first == 0:
                noise = torch.randn(value.shape, generator=generator) * 0.25
                value.copy_(noise)
            else:
                value.mul_((torch.rand(value.shape, generator=generator) + 0.5).to(value))


def import_candidate(code: CandidateCode) -> ModuleType:
    """Imports the candidate's file under its own name; whatever it raises passes through."""
    if code.beside and code.beside not in sys.path:
        sys.path.insert(0, code.beside)
    spec = importlib.util.spec_from_file_location(code.module, Path(code.path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[code.module] = module
    spec.loader.exec_module(module)
    return module


def find_entry(module: ModuleType, reference: Reference) -> Any:
    """`ModelNew`, or what stands under the reference's name; None where there is neither."""
    found = getattr(module, "ModelNew", None)
    if found is not None:
        return found
    named = getattr(module, reference.entry, None)
    return None if named is reference.target else named


def build_candidate(
    entry: Any, reference: Reference, build: Build, model: Any, weights: str
) -> Any:
    """The candidate, ready to be called, with the weights of `model`.

    weights: as in Compiled. Whatever its constructor raises passes through.
    """
    if not isinstance(entry, type):
        return entry
    if weights == "from_reference":
        return entry.from_reference(model)  # type: ignore[attr-defined]
    torch.manual_seed(build.seed)
    arguments = reference.init_args() if reference.form == "module" else []
    for position, value in build.init_args.items():
        arguments[position] = value
    made = entry(*arguments)
    if not isinstance(made, torch.nn.Module):
        return made
    if reference.policy.dtypes:
        made.to(getattr(torch, reference.policy.dtypes[0]))
    if isinstance(model, torch.nn.Module):
        device = next((v.device for v in model.state_dict().values()), torch.device(build.device))
        made.to(device)
        if weights == "state_dict":
            made.load_state_dict(model.state_dict())
        if reference.policy.mode != "as_constructed":
            made.train(reference.policy.mode == "train")
    return made


def how_weights_pass(entry: Any, made: Any, model: Any) -> str:
    """How this candidate can get the reference's weights: a value of Compiled.weights."""
    if not isinstance(entry, type):
        return "none"
    if hasattr(entry, "from_reference"):
        return "from_reference"
    if not isinstance(made, torch.nn.Module) or not isinstance(model, torch.nn.Module):
        return "none"
    ours, theirs = made.state_dict(), model.state_dict()
    same = ours.keys() == theirs.keys() and all(
        ours[name].shape == theirs[name].shape for name in ours
    )
    return "state_dict" if same else "seed"


def derived_tensors(made: Any) -> tuple[str, ...]:
    """Tensors that a module keeps beside its parameters and persistent buffers."""
    if not isinstance(made, torch.nn.Module):
        return ()
    found = []
    for path, module in made.named_modules():
        hidden = module._non_persistent_buffers_set
        names = [n for n, v in vars(module).items() if isinstance(v, torch.Tensor)]
        found += [f"{path}.{n}".lstrip(".") for n in [*names, *sorted(hidden)]]
    return tuple(found)

"""Jobs of the tests: rewritten sources run in the interpreter against their reference."""

import tempfile
from pathlib import Path

import msgspec
import torch
from torch.utils import _pytree as pytree


def values(arguments, report):
    """Largest error of each source as a share of its bound, over all shapes.

    arguments: {"file", "sources": {name: text}, "shapes", "card"}. A string is what it raised.
    """
    from mtmc_engine.capture.load import load_reference
    from mtmc_engine.core.device import DeviceCard
    from mtmc_engine.proof.work.drivers import pretend

    pretend(msgspec.convert(arguments["card"], DeviceCard))
    reference = load_reference(arguments["file"])
    found = {}
    for number, (name, text) in enumerate(arguments["sources"].items()):
        try:
            found[name] = _worst(reference, number, text, arguments["shapes"])
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def _worst(reference, number, text, shapes):
    from mtmc_engine.proof.wire import Build, CandidateCode
    from mtmc_engine.proof.work.build import build_candidate, find_entry, import_candidate
    from mtmc_engine.proof.work.here import cuda_is

    path = Path(tempfile.mkdtemp()) / f"rewritten_{number}.py"
    path.write_text(text)
    build = Build(str(path), reference.entry, reference.policy, 0, "cpu")
    model = reference.build(0)
    with cuda_is("cpu"):
        module = import_candidate(CandidateCode(str(path), path.stem))
        entry = find_entry(module, reference)
        weights = "state_dict" if isinstance(model, torch.nn.Module) else "none"
        made = build_candidate(entry, reference, build, model, weights)
    worst = 0.0
    for case, one in enumerate(shapes):
        worst = max(worst, _error(reference, model, made, one, case))
    return worst


def _error(reference, model, made, shapes, seed):
    from mtmc_engine.capture.load import resized
    from mtmc_engine.core.graph import TensorSpec
    from mtmc_engine.proof.work.here import cuda_is

    inputs = reference.inputs(seed)
    names = [str(value.dtype).removeprefix("torch.") for value in inputs]
    specs = [TensorSpec(tuple(s), d) for s, d in zip(shapes, names, strict=True)]
    inputs = resized(inputs, specs, seed)
    with torch.no_grad():
        exact = pytree.tree_leaves(
            _double(model)(*[value.double() for value in inputs])
            if not isinstance(model, torch.nn.Module)
            else model.double()(*[value.double() for value in inputs])
        )
        model = model.float() if isinstance(model, torch.nn.Module) else model
        with cuda_is("cpu"):
            given = pytree.tree_leaves(made(*[value.clone() for value in inputs]))
    worst = 0.0
    for true, value in zip(exact, given, strict=True):
        assert value.shape == true.shape
        size = max(float(true.abs().max()), 1e-6)
        bound = 64 * torch.finfo(value.dtype).eps * size
        worst = max(worst, float((value.double() - true).abs().max()) / bound)
    return worst


def _double(function):
    return function

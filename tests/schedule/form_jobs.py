"""Jobs of the tests of calls: programs beside their reference, call by call."""

import copy

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.call import invoke
from mtmc_engine.capture.load import load_reference
from mtmc_engine.proof.work.tensors import leaves, structure
from tests.schedule.render_jobs import _program, _strides


def compare(arguments, report):
    """Where programs differ from their reference; [] where they agree in everything.

    arguments: {"file": reference, "sources": programs by name}.
    """
    reference = load_reference(arguments["file"])
    model = reference.build(0)
    inputs, keywords = reference.call_inputs(1)
    found = []
    for name, source in arguments["sources"].items():
        program, own, candidate = _program(source), copy.deepcopy(model), None
        if reference.form == "module":
            candidate = program.ModelNew.from_reference(copy.deepcopy(model))
        else:
            candidate = getattr(program, reference.entry)
        with torch.no_grad():
            expected = invoke(own, _copied(inputs), keywords)
            actual = invoke(candidate, _copied(inputs), keywords)
        if _classes(actual) != _classes(expected) or structure(actual) != structure(expected):
            found.append((name, structure(actual), structure(expected)))
            continue
        pairs = zip(leaves(expected), leaves(actual), strict=True)
        found += [(name, path, _unlike(one, two)) for (path, one), (_, two) in pairs]
        if reference.form == "module":
            theirs, ours = own.state_dict(), candidate.state_dict()
            found += [(name, key, _unlike(theirs[key], ours[key])) for key in theirs]
    return [item for item in found if item[-1]]


def _copied(inputs):
    return pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, inputs)


def _classes(value):
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, list | tuple):
        return [kind, *map(_classes, value)]
    return [kind, *map(_classes, value.values())] if isinstance(value, dict) else kind


def _unlike(expected, actual):
    """What differs between two leaves, in words; "" for nothing."""
    if not isinstance(expected, torch.Tensor):
        return "" if expected == actual else f"{actual} instead of {expected}"
    for what in ("shape", "dtype"):
        if getattr(expected, what) != getattr(actual, what):
            return f"{what} {getattr(actual, what)} instead of {getattr(expected, what)}"
    if expected.numel() and _strides(expected) != _strides(actual):
        return f"strides {actual.stride()} instead of {expected.stride()}"
    wide = torch.complex128 if expected.is_complex() else torch.float64
    size = float(expected.to(wide).abs().nan_to_num(0, 0, 0).max()) if expected.numel() else 0.0
    close = torch.allclose(
        actual.to(wide), expected.to(wide), rtol=1e-5, atol=4e-6 * size, equal_nan=True
    )
    return "" if close else "other values"

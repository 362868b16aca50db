"""Jobs of the rendering tests: capture of small modules, and runs of rendered programs."""

import importlib.util
import sys
from pathlib import Path

import msgspec

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.core.task import InputSet, Policy, Task
from mtmc_engine.system.devices import card


def capture(arguments, report):
    """Tasks of several files, by path: the real export, without trial runs and twins."""
    return {file: msgspec.to_builtins(_task(file)) for file in arguments["files"]}


def _task(file):
    import torch

    from mtmc_engine.capture.load import load_reference
    from mtmc_engine.capture.subject import subject_of

    reference = load_reference(file)
    subject = subject_of(reference, 0)
    export = subject.export()
    tensors = tuple(
        TensorSpec(tuple(x.shape), str(x.dtype).removeprefix("torch."))
        for x in subject.inputs
        if isinstance(x, torch.Tensor)
    )
    return Task(
        file=file,
        digest="",
        name=Path(file).stem,
        module=reference.module.__name__,
        form=reference.form,
        entry=reference.entry,
        policy=Policy(),
        device=card("sm_90"),
        inputs=(InputSet("", tensors),),
        graph=export.graph,
        arguments=subject.call.names,
        fixed=subject.call.fixed,
        vary=export.vary,
    )


def run(arguments, report):
    """Runs a rendered program and its reference on the same inputs, and on other layouts.

    arguments: {"file": reference, "source": program, "layouts": [names]}. Returns one entry per
    output and layout: {"layout", "output", "error", "bound", "strides", "expected_strides"}.
    """
    import torch

    from mtmc_engine.capture.load import load_reference
    from mtmc_engine.proof.work.drivers import pretend

    pretend(card("sm_90"), 1)
    reference = load_reference(arguments["file"])
    program = _program(arguments["source"])
    model = reference.build(0)
    if reference.form == "module":
        _randomise(model)
        candidate = program.ModelNew.from_reference(model)
    else:
        candidate = getattr(program, reference.entry)
    found = []
    for layout in arguments["layouts"]:
        inputs = [_laid_out(x, layout) for x in reference.inputs(1)]
        truth = _leaves(_precise(reference, inputs))
        moved = _leaves(_precise(reference, [_rounded(x) for x in inputs]))
        with torch.no_grad():
            expected, actual = _leaves(model(*inputs)), _leaves(candidate(*inputs))
        assert len(expected) == len(actual), "another number of outputs"
        for at, leaves in enumerate(zip(expected, actual, truth, moved, strict=True)):
            found.append({"layout": layout, "output": at, **_compared(layout, *leaves)})
    return found


def compile_ahead(arguments, report):
    """Compiles a rendered program's kernels for sm_90 by running it on meta tensors.

    arguments: {"file": reference, "source": program}. Returns {"shapes", "launches"}.
    """
    import torch

    from mtmc_engine.capture.load import load_reference
    from mtmc_engine.proof.work.drivers import pretend
    from mtmc_engine.proof.work.record import LaunchRecorder

    target = card("sm_90")
    pretend(target, 1)
    recorder = LaunchRecorder(target, lambda _: None)
    recorder.install()
    reference = load_reference(arguments["file"])
    program = _program(arguments["source"])
    candidate = (
        program.ModelNew.from_reference(reference.build(0).to("meta"))
        if reference.form == "module"
        else getattr(program, reference.entry)
    )
    inputs = [x.to("meta") if isinstance(x, torch.Tensor) else x for x in reference.inputs(1)]
    outputs = _leaves(candidate(*inputs))
    return {
        "shapes": [list(y.shape) for y in outputs],
        "launches": msgspec.to_builtins(recorder.launches),
    }


def _program(source):
    path = Path("program.py").resolve()
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["program"] = module
    spec.loader.exec_module(module)
    return module


def _randomise(model):
    import torch

    torch.manual_seed(7)
    with torch.no_grad():
        for value in [*model.parameters(), *model.buffers()]:
            if value.is_floating_point():
                value.copy_(torch.rand_like(value) + 0.5)


def _laid_out(x, layout):
    import torch

    if not isinstance(x, torch.Tensor) or layout == "contiguous" or x.dim() < 2:
        return x
    if layout == "empty":
        return x[:0]
    if layout == "transposed":
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    wide = x.new_zeros((*x.shape[:-1], x.shape[-1] + 3))
    wide[..., : x.shape[-1]] = x
    return wide[..., : x.shape[-1]]


def _precise(reference, inputs):
    """The reference in float64."""
    import torch

    model = reference.build(0)
    if reference.form == "module":
        _randomise(model)
        model = model.double()
    inputs = [
        x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs
    ]
    with torch.no_grad():
        return model(*inputs)


def _rounded(x):
    """The input as if it had been rounded once more in float32."""
    import torch

    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return x
    signs = torch.randint(0, 2, x.shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    return x.double() * (1 + signs * 2.0**-24)


def _leaves(value):
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [value]


def _strides(x):
    """Strides that matter: not those of dimensions of size one."""
    return [stride for size, stride in zip(x.shape, x.stride(), strict=True) if size > 1]


def _compared(layout, expected, actual, truth, moved):
    import torch

    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    assert actual.dtype == expected.dtype, (actual.dtype, expected.dtype)
    if layout == "contiguous":
        assert _strides(actual) == _strides(expected), (actual.stride(), expected.stride())
    if not expected.is_floating_point():
        return {"error": float((actual != expected).sum()), "bound": 0.0}
    truth = truth.double()
    finite = truth.isfinite()
    same = (actual.double() == truth) | (actual.isnan() & truth.isnan())
    assert bool((finite | same).all()), "infinities or NaN differ"
    scale = float(truth[finite].abs().max()) if finite.any() else 0.0
    error = float((actual.double() - truth)[finite].abs().max()) if finite.any() else 0.0
    own = float((expected.double() - truth)[finite].abs().max()) if finite.any() else 0.0
    epsilon = torch.finfo(expected.dtype).eps
    least = 2 * epsilon + 16 * (1.2e-7 if expected.dtype != torch.float64 else epsilon)
    condition = float((moved.double() - truth)[finite].abs().max()) if finite.any() else 0.0
    return {"error": error, "bound": max(4 * own, 4 * condition, least * scale)}

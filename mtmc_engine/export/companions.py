"""The exported kernel's test and benchmark, each a file that runs without this tool."""

from __future__ import annotations

import math

from mtmc_engine.core.task import Task
from mtmc_engine.proof.space import Space

# Sizes of the dimensions that may vary, used where no GPU is present: prime, and around a block.
SMALL_SIZES = (1, 3, 17, 33)
# Declared input sets of at most this many elements are tried without a GPU, too.
_FEW_ELEMENTS = 1 << 14


def test_source(task: Task, module: str, program_source: str) -> str:
    """A pytest file: the kernels against the reference in float64, and the guard's fall back.

    On a GPU it uses the declared shapes and small ones; elsewhere small ones in Triton's
    interpreter, which multiplies bfloat16 tiles by their bits: such products need the GPU.
    An error is judged by the reference's own error against float64.
    """
    own = "autotune(" in program_source
    half = any(entry.spec.dtype == "bfloat16" for entry in task.graph.inputs)
    return _TEST.format(
        name=task.module,
        module=module,
        builders=_builders(task),
        drawing=_DRAWING.format(device="DEVICE"),
        declared=_tuple(declared_shapes(task)),
        small=_tuple(small_shapes(task)),
        needs_gpu=_TUNES if own else _NEEDS_GPU if half and "tl.dot" in program_source else "",
    )


def benchmark_source(task: Task, module: str) -> str:
    """A script that times the kernels against eager and torch.compile on a GPU."""
    return _BENCHMARK.format(
        name=task.module,
        module=module,
        builders=_builders(task),
        drawing=_DRAWING.format(device='"cuda"'),
        declared=_tuple(declared_shapes(task)),
    )


def declared_shapes(task: Task) -> list[list[list[int]]]:
    """Call shapes of the declared input sets that the kernels serve: the first, and those that
    differ from it in dimensions that may vary.
    """
    space = Space(task.inputs[0].tensors, task.graph)
    sets = [tuple(spec.shape for spec in one.tensors) for one in task.inputs]
    served = [one for number, one in enumerate(sets) if number == 0 or space.leads_to(one)]
    return [[list(shape) for shape in one] for one in served]


def small_shapes(task: Task) -> list[list[list[int]]]:
    """Call shapes for the interpreter: varying dimensions small, the fixed ones as they are."""
    tensors = task.inputs[0].tensors
    entries = [entry for entry in task.graph.inputs if entry.kind == "input"]
    shapes = []
    for turn in range(len(SMALL_SIZES)):
        sizes = _sizes(task, turn)
        shape = []
        for position, spec in enumerate(tensors):
            dims = entries[position].spec.dims if position < len(entries) else ()
            shape.append(
                [
                    sizes.get(dims[dim], size) if dim < len(dims) else size
                    for dim, size in enumerate(spec.shape)
                ]
            )
        if shape not in shapes:
            shapes.append(shape)
    few = [one for one in declared_shapes(task) if sum(map(math.prod, one)) <= _FEW_ELEMENTS]
    return shapes + [one for one in few if one not in shapes]


def _sizes(task: Task, turn: int) -> dict[str, int]:
    """A size for every varying symbol; two symbols never get the same one in a turn."""
    symbols: dict[str, int] = {}
    for entry in task.graph.inputs:
        for dim in entry.spec.dims:
            if not dim.lstrip("-").isdigit() and dim not in symbols:
                symbols[dim] = SMALL_SIZES[(turn + len(symbols)) % len(SMALL_SIZES)] + (
                    2 * (len(symbols) // len(SMALL_SIZES))
                )
    return symbols


def _tuple(shapes: list[list[list[int]]]) -> str:
    rows = ",\n    ".join(repr(shape) for shape in shapes)
    return f"[\n    {rows},\n]"


def _builders(task: Task) -> str:
    if not task.program:
        builders = _MODULE_BUILDERS if task.form == "module" else _FUNCTION_BUILDERS
        return builders.format(entry=task.entry)
    is_module = task.launcher == "ModelNew" and task.form == "module"
    builders = _OWN_MODULE_BUILDERS if is_module else _OWN_FUNCTION_BUILDERS
    return builders.format(entry=task.entry, launcher=task.launcher)


_MODULE_BUILDERS = '''\
def build(device):
    """The reference with random weights, and the kernels sharing those weights."""
    torch.manual_seed(0)
    arguments = kernels.get_init_inputs() if hasattr(kernels, "get_init_inputs") else []
    reference = kernels.{entry}(*arguments)
    with torch.no_grad():
        for weight in reference.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    reference = reference.to(device)
    return reference, kernels.ModelNew.from_reference(reference)


def declared_inputs():
    """The call's arguments as the reference's author declared them."""
    torch.manual_seed(0)
    return kernels.get_inputs()
'''

_FUNCTION_BUILDERS = '''\
def build(device):
    """The reference, and the kernels behind the same call."""
    return kernels._reference, kernels.{entry}


def declared_inputs():
    """The call's arguments as the reference's author declared them."""
    torch.manual_seed(0)
    return kernels.inputs()
'''

_OWN_MODULE_BUILDERS = _MODULE_BUILDERS.replace(
    "    return reference, kernels.ModelNew.from_reference(reference)\n",
    '    if hasattr(kernels.ModelNew, "from_reference"):\n'
    "        return reference, kernels.ModelNew.from_reference(reference)\n"
    "    optimised = kernels.ModelNew(*arguments).to(device)\n"
    "    optimised.load_state_dict(reference.state_dict())\n"
    "    return reference, optimised\n",
)

_OWN_FUNCTION_BUILDERS = '''\
def build(device):
    """The reference, and the kernels behind the same call."""
    launcher = kernels.{launcher}
    return kernels._reference, launcher() if isinstance(launcher, type) else launcher


def declared_inputs():
    """The call's arguments as the reference's author declared them."""
    torch.manual_seed(0)
    return kernels.inputs() if hasattr(kernels, "inputs") else kernels.get_inputs()
'''

_TUNES = '@pytest.mark.skipif(not ON_GPU, reason="kernels are tuned on a GPU only")\n'

_NEEDS_GPU = (
    '@pytest.mark.skipif(not ON_GPU, reason="Triton\'s interpreter cannot multiply bfloat16")\n'
)

_DRAWING = '''\
def inputs_of(shapes):
    """Arguments in other shapes, their elements drawn from the declared ones."""
    shapes = list(shapes)

    def other(value):
        if not isinstance(value, torch.Tensor):
            return value
        chosen = torch.randint(max(value.numel(), 1), shapes.pop(0))
        return value.flatten()[chosen].to({device})

    return tree_map(other, declared_inputs())
'''

_TEST = '''\
"""python -m pytest test_{name}.py: the kernels of {module} against the reference in float64."""

import copy
import os

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

ON_GPU = torch.cuda.is_available()
if not ON_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, by the next line

import {module} as kernels

DEVICE = "cuda" if ON_GPU else "cpu"
SMALL = {small}
DECLARED = {declared}
# An error may be this many times the reference's own, or this many units in the last place.
FACTOR, ULPS = 4.0, 8.0


{builders}

def called(operator, arguments):
    """A file may give its arguments by name."""
    return operator(**arguments) if isinstance(arguments, dict) else operator(*arguments)


{drawing}

def to_double(value):
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if floating else value


def tensors_of(result):
    """The tensors of a result, whatever it is made of."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    if not isinstance(result, list | tuple):
        result = list(getattr(result, "__dict__", {{}}).values())
    return [tensor for part in result for tensor in tensors_of(part)]


{needs_gpu}@pytest.mark.parametrize("shapes", SMALL + (DECLARED if ON_GPU else []), ids=str)
@torch.no_grad()
def test_values(shapes, recwarn):
    reference, optimised = build(DEVICE)
    arguments = inputs_of(shapes)
    is_module = isinstance(reference, torch.nn.Module)
    exact = copy.deepcopy(reference).double() if is_module else reference
    try:
        own = tensors_of(called(reference, arguments))
    except (RuntimeError, ValueError) as error:
        pytest.skip(f"the reference refuses these sizes: {{error}}")
    truths = tensors_of(called(exact, tree_map(to_double, arguments)))
    results = tensors_of(called(optimised, arguments))
    assert not [w for w in recwarn if "reference runs instead" in str(w.message)]
    for truth, expected, actual in zip(truths, own, results, strict=True):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        if not actual.is_floating_point():
            assert torch.equal(actual, expected)
            continue
        if actual.numel() == 0:
            continue
        ulp = torch.finfo(actual.dtype).eps * truth.abs().max()
        bound = torch.maximum(FACTOR * (expected.double() - truth).abs().max(), ULPS * ulp)
        assert (actual.double() - truth).abs().max() <= bound


def test_gradients_reach_the_reference():
    reference, optimised = build(DEVICE)
    arguments = inputs_of(SMALL[0])
    for value in tree_leaves(arguments):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            value.requires_grad_()
    if not any(t.requires_grad for t in tensors_of(called(reference, arguments))):
        pytest.skip("the reference has no gradient")
    with pytest.warns(UserWarning, match="gradients are needed"):
        kernels._SAID.clear()
        results = tensors_of(called(optimised, arguments))
    assert any(result.requires_grad for result in results)
'''

_BENCHMARK = '''\
"""python bench_{name}.py: {module} against PyTorch eager and torch.compile, on this GPU."""

import sys

import torch
from torch.utils._pytree import tree_map

if not torch.cuda.is_available():
    sys.exit("bench_{name}.py needs an NVIDIA GPU: times from another device mean nothing here.")

import triton
import {module} as kernels

DECLARED = {declared}


{builders}

{drawing}

def called(operator, arguments):
    """A file may give its arguments by name."""
    return operator(**arguments) if isinstance(arguments, dict) else operator(*arguments)


def times_us(call, arguments):
    """Median, 20th and 80th percentile of the device time of one call, microseconds."""
    low, median, high = (1e3 * value for value in triton.testing.do_bench(
        lambda: called(call, arguments), quantiles=[0.2, 0.5, 0.8]
    ))
    return median, low, high


@torch.no_grad()
def main():
    reference, optimised = build("cuda")
    contestants = {{
        "eager": reference,
        "torch.compile": torch.compile(reference),
        "{module}": optimised,
    }}
    for shapes in DECLARED:
        print(", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes))
        first = shapes is DECLARED[0]  # as its author made it, strides included
        made = declared_inputs() if first else inputs_of(shapes)
        arguments = tree_map(lambda v: v.cuda() if isinstance(v, torch.Tensor) else v, made)
        eager = None
        for name, call in contestants.items():
            median, low, high = times_us(call, arguments)
            eager = eager or median
            spread = f"[{{low:.1f}}, {{high:.1f}}]"
            print(f"  {{name:24}} {{median:10.1f}} us  {{spread:20}}  {{eager / median:5.2f}}x")


if __name__ == "__main__":
    main()
'''

"""Calls whose tensors are not what lies in memory reach the reference, with the right values."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from msgspec.structs import replace
from test_export import exported, make_task, run_python

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.graph import Graph
from mtmc_engine.core.program import Program, Schedule
from mtmc_engine.export.standalone import standalone
from mtmc_engine.export.write import check_folder

SEES_NOT = "a transform or a tensor subclass is not seen by the kernels"
FUNCTION = """\
import torch, torch.autograd.forward_ad as fwAD, scaled_softmax_mtmc as k
torch.manual_seed(0)
x, w = torch.randn(3, 4, 5), torch.full((1,), 2.0)
ref, new = k._reference, k.scaled_softmax
calls = {
    "jvp": lambda f: torch.func.jvp(lambda a: f(a, w), (x[0],), (torch.ones(4, 5).cumsum(1),))[1],
    "jvp of the weight": lambda f: torch.func.jvp(lambda b: f(x[0], b), (w,), (w,))[1],
    "vmap": lambda f: torch.func.vmap(lambda a: f(a, w))(x),
    "jacfwd": lambda f: torch.func.jacfwd(lambda a: f(a, w))(x[0]),
    "hessian": lambda f: torch.func.hessian(lambda a: f(a, w).square().sum())(x[0]),
    "grad": lambda f: torch.func.grad(lambda a: f(a, w).square().sum())(x[0]),
}
with torch.no_grad():
    for name, call in calls.items():
        k._SAID.clear()
        assert torch.equal(call(ref), call(new)), name
        assert k._SAID, name
    k._SAID.clear()
    with fwAD.dual_level():
        dual = fwAD.make_dual(x[0], torch.ones(4, 5).cumsum(1))
        tangents = [fwAD.unpack_dual(f(dual, w)).tangent for f in (ref, new)]
    assert torch.equal(*tangents) and tangents[0].abs().max() > 0
    k._SAID.clear()
    negated = torch.imag(torch.complex(x[0], x[0]).conj())
    assert negated.is_neg() and torch.equal(new(negated, w), ref(-x[0], w)) and k._SAID
    k._SAID.clear()
    assert torch.allclose(new(x[0], w), ref(x[0], w)) and not k._SAID
"""
MODULE = """\
import torch, scaled_softmax_mtmc as k
torch.manual_seed(0)
x = torch.randn(4, 5)
reference = k.Model(3.0)
new = k.ModelNew.from_reference(reference)
weights = {"weight": torch.tensor([[1.0], [2.0], [3.0]])}


def ensemble(model):
    return torch.func.vmap(lambda w: torch.func.functional_call(model, w, (x,)))(weights)


with torch.no_grad():
    assert torch.equal(ensemble(new), ensemble(reference))
    assert k._SAID
"""
SUBCLASS = """\
import torch, scaled_softmax_mtmc as k
class Logged(torch.Tensor):
    pass
with torch.no_grad():
    k.ModelNew(3.0)(torch.randn(4, 5).as_subclass(Logged))
"""


def test_transforms_of_a_function(tmp_path: Path) -> None:
    done = run_python(exported(tmp_path, "function"), "-c", FUNCTION, TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr


def test_transforms_over_the_weights_of_a_module(tmp_path: Path) -> None:
    done = run_python(exported(tmp_path, "module"), "-c", MODULE, TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(SEES_NOT) == 1


def test_a_tensor_subclass_runs_the_reference(tmp_path: Path) -> None:
    done = run_python(exported(tmp_path, "module"), "-c", SUBCLASS, TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(SEES_NOT) == 1


@pytest.mark.parametrize("name", ["torch.py", "triton.py", "torch/__init__.py"])
def test_a_folder_that_would_hide_torch_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    with pytest.raises(UsageError, match=f"{name} would hide"):
        check_folder(tmp_path)


def test_a_fixed_argument_is_asked_for_once(tmp_path: Path) -> None:
    """The program's own fall back and the two names of the reference are gone from the export."""
    task = make_task(tmp_path, "function")
    task = replace(
        task,
        arguments=("x", "eps"),
        fixed={"eps": 1e-6},
        graph=Graph(task.graph.inputs[:1], (), []),
    )
    program = (
        "import torch\n\n"
        "from scaled_softmax import scaled_softmax as reference_scaled_softmax\n\n\n"
        "def scaled_softmax(x, eps=1e-06):\n"
        "    if eps != 1e-06:\n"
        "        return reference_scaled_softmax(x, eps)\n"
        "    return torch.softmax(x, -1)\n"
    )
    reference = (
        "import torch\n\ndef scaled_softmax(x, eps=1e-6):\n    return torch.softmax(x, -1)\n"
    )
    text = standalone(task, Program(program, Schedule(())), reference, "heading")
    ast.parse(text)
    assert text.count("eps != 1e-06") == 1
    assert "reference_scaled_softmax" not in text
    used = program.replace("torch.softmax(x, -1)\n", "reference_scaled_softmax(x * 2, eps)\n")
    text = standalone(task, Program(used, Schedule(())), reference, "heading")
    assert "reference_scaled_softmax = scaled_softmax" in text

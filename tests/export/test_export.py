"""The exported folder runs on its own: guard, test, benchmark and report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mtmc_engine.core.action import Action
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import StepSummary
from mtmc_engine.core.graph import Graph, GraphInput, TensorSpec
from mtmc_engine.core.measurement import Measurement, Ratio
from mtmc_engine.core.program import Group, Program, Schedule, Templated
from mtmc_engine.core.task import InputSet, Policy, Task
from mtmc_engine.core.verdict import Class, Gate, GateResult, Verdict
from mtmc_engine.export.companions import benchmark_source, declared_shapes, small_shapes
from mtmc_engine.export.guard import guard_source
from mtmc_engine.export.write import export_best
from mtmc_engine.plan.tree import TreeNode

CARD = DeviceCard("Test card", 90, 132, 4800.0, {"fp32": 67.0}, 232448, 60_000_000)
SPEC = TensorSpec((64, 96), "float32", ("s0", "s1"))

MODULE_REFERENCE = '''\
"""Softmax over rows."""
from __future__ import annotations

import torch
import torch.nn as nn

from scaling import SCALE


class Model(nn.Module):
    def __init__(self, scale=2.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((1,), scale))

    def forward(self, x):
        return torch.softmax(x * self.weight * SCALE, dim=-1)


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return []
'''

KERNEL = '''\
"""softmax in one kernel."""
import torch
import triton
import triton.language as tl

{header}


@triton.jit
def softmax_kernel(x_ptr, weight_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf"))
    x = x * tl.load(weight_ptr) * 0.5
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)


def row_softmax(x, weight):
    x = x.contiguous()
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, weight, out, x.shape[1], BLOCK=block)
    return out

'''
MODULE_PROGRAM = (
    KERNEL.format(header="from scaled_softmax import Model")
    + '''
class ModelNew(Model):
    """Softmax over rows in one kernel."""

    @classmethod
    def from_reference(cls, model):
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, x):
        return row_softmax(x, self.weight)
'''
)
FUNCTION_REFERENCE = """\
import torch


def scaled_softmax(x, weight):
    return torch.softmax(x * weight * 0.5, dim=-1)


def inputs():
    return [torch.randn(64, 96), torch.ones(1)]
"""
FUNCTION_PROGRAM = (
    KERNEL.format(header="")
    + """
def scaled_softmax(x, weight):
    return row_softmax(x, weight)
"""
)
STEPS = (
    StepSummary(
        step=1, node="n1", action="lower", phrase="lower r1", verdict="UNTIMED", approved=True,
        time_us=10.0, time_kind="estimated", ratio_to_original=1.5,
    ),
)  # fmt: skip
KERNELS = [{"kernel": "softmax_kernel", "registers": 39}]
VERDICT = Verdict(
    Class.UNTIMED, "values 2/2; its time is estimated",
    (
        GateResult(Gate.COMPILE, True, 1.2, "1 kernel", {"kernels": KERNELS}),
        GateResult(Gate.VALUES, True, 0.5, "values 2/2", {"names": ["19x67, with NaN", "0x67"]}),
    ),
    ("a & b",),
)  # fmt: skip
ESTIMATE = Measurement("estimated", 10.0, {"original": Ratio(1.5, 1.5, 1.5)}, 8.0, "roofline")


def make_task(folder: Path, form: str) -> Task:
    path = folder / "scaled_softmax.py"
    path.write_text(MODULE_REFERENCE if form == "module" else FUNCTION_REFERENCE)
    (folder / "scaling.py").write_text("SCALE = 0.5\n")
    inputs = [GraphInput("x", "input", "x", SPEC)]
    weight = TensorSpec((1,), "float32", ("1",))
    kind, arguments = ("parameter", ("x",)) if form == "module" else ("input", ("x", "weight"))
    inputs.append(GraphInput("weight", kind, "weight", weight))
    tensors = (SPEC,) if form == "module" else (SPEC, weight)
    return Task(
        file=str(path), digest="", name="scaled_softmax", module="scaled_softmax", form=form,
        entry="Model" if form == "module" else "scaled_softmax", policy=Policy(), device=CARD,
        inputs=(InputSet("64x96", tensors),), graph=Graph(tuple(inputs), (), ["%x"]),
        arguments=arguments, vary=((0, 0), (0, 1)),
    )  # fmt: skip


def path_to(program: Program) -> tuple[TreeNode, ...]:
    """The original, and the program that one step made of it."""
    lower = Action("lower", "lower r1", "r1", reason="r1 reads x <three> times")
    original = TreeNode("n0", None, None, Program("import torch\n", Schedule(())))
    return original, TreeNode("n1", "n0", lower, program, VERDICT, ESTIMATE, "kept", 1)


def exported(tmp_path: Path, form: str) -> Path:
    source, folder = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    program = Program(MODULE_PROGRAM if form == "module" else FUNCTION_PROGRAM, Schedule(()))
    answer = export_best(make_task(source, form), path=path_to(program), steps=STEPS, folder=folder)
    for file in (source / "scaled_softmax.py", source / "scaling.py"):
        file.unlink()
    assert {path.name for path in folder.iterdir()} == set(answer.files)
    return folder


def run_python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | environment
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("form", ["module", "function"])
def test_the_exported_test_passes_on_its_own(tmp_path: Path, form: str) -> None:
    folder = exported(tmp_path, form)
    done = run_python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
    assert "mtmc_engine" not in (folder / "scaled_softmax_mtmc.py").read_text()


def test_a_wrong_kernel_fails_the_exported_test(tmp_path: Path) -> None:
    folder = exported(tmp_path, "module")
    path = folder / "scaled_softmax_mtmc.py"
    path.write_text(
        path.read_text().replace("e / tl.sum(e, axis=0)", "e / (tl.sum(e, axis=0) + 1e-4)")
    )
    done = run_python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")
    assert done.returncode == 1
    assert "5 failed" in done.stdout


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("m(torch.randn(4, 5))", "x is not on the current GPU"),
        ("m(torch.randn(4, 5).double())", "x has a shape or dtype that was not proven"),
        ("m(torch.randn(2, 4, 5))", "x has a shape or dtype that was not proven"),
        ("m.double()(torch.randn(4, 5))", "the weights changed dtype"),
    ],
)
def test_calls_that_were_not_proven_run_the_reference(
    tmp_path: Path, call: str, reason: str
) -> None:
    folder = exported(tmp_path, "module")
    interpret = {} if "GPU" in reason else {"TRITON_INTERPRET": "1"}
    code = (
        "import torch, scaled_softmax_mtmc as k\n"
        "m = k.ModelNew(3.0)\n"
        f"with torch.no_grad():\n    a, b = {call}, {call}\n"
        "assert (a.sum(-1) - 1).abs().max() < 1e-5\n"
    )
    done = run_python(folder, "-c", code, **interpret)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(reason) == 1


def test_the_benchmark_needs_a_gpu_and_says_so(tmp_path: Path) -> None:
    done = run_python(
        exported(tmp_path, "module"), "bench_scaled_softmax.py", CUDA_VISIBLE_DEVICES=""
    )
    assert done.returncode == 1
    assert "needs an NVIDIA GPU" in done.stderr


def test_test_and_benchmark_run_every_declared_set_that_the_kernels_serve(tmp_path: Path) -> None:
    task = make_task(tmp_path, "module")
    shapes = ((17, 129), (4096, 8192), (4, 4, 4))
    more = [InputSet(str(shape), (TensorSpec(shape, "float32"),)) for shape in shapes]
    task = msgspec.structs.replace(task, inputs=(*task.inputs, *more))
    assert declared_shapes(task) == [[[64, 96]], [[17, 129]], [[4096, 8192]]]
    assert small_shapes(task)[-2:] == [[[64, 96]], [[17, 129]]]
    assert "[[4096, 8192]],\n]" in benchmark_source(task, "scaled_softmax_mtmc")


def test_an_estimate_is_never_called_measured(tmp_path: Path) -> None:
    folder = exported(tmp_path, "module")
    report = (folder / "report.html").read_text()
    assert "Nothing was measured" in report
    assert '10.0&nbsp;µs <span class="unmeasured">estimated' in report
    assert "Estimated, not measured: 10.0 us" in (folder / "scaled_softmax_mtmc.py").read_text()


def test_an_unwritable_folder_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        export_best(
            make_task(tmp_path, "module"), path=path_to(Program(MODULE_PROGRAM, Schedule(()))),
            steps=(), folder=tmp_path / "file" / "out",
        )  # fmt: skip


def test_sizes_that_agreed_when_proven_must_agree(tmp_path: Path) -> None:
    gate = GraphInput("gate", "input", "gate", SPEC)
    task = make_task(tmp_path, "function")
    graph = Graph((task.graph.inputs[0], gate), (), ["%x"])
    task = msgspec.structs.replace(
        task, graph=graph, arguments=("x", "gate"), vary=((0, 0), (0, 1), (1, 0), (1, 1))
    )
    source = "import os\nimport torch\n" + guard_source(task, Schedule(()))
    code = source + (
        "_INTERPRETED = True\n"
        "x, rows, columns = torch.ones(4, 8), torch.ones(1, 8), torch.ones(4, 1)\n"
        "assert not _not_proven(x, x.clone())\n"
        "assert 'gate' in _not_proven(x, rows) and 'gate' in _not_proven(x, columns)\n"
    )
    done = run_python(tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr


def test_rows_longer_than_were_tried_run_the_reference(tmp_path: Path) -> None:
    rows = Group("r1", (), Templated("rows", {"rows_per_program": 1, "warps": 4}))
    source = guard_source(make_task(tmp_path, "module"), Schedule((rows,)))
    assert "x.shape[-1] > 65536" in source
    assert "x.shape[-1] >" not in guard_source(make_task(tmp_path, "module"), Schedule(()))

"""What a user can get wrong: one sentence each, with the line where there is one."""

import msgspec
import pytest
import torch

from mtmc_engine.capture.client import task_of
from mtmc_engine.core.errors import ReferenceFailed, UsageError
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Limits

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1
"""
INPUTS = """
def get_inputs():
    return [torch.randn(4, 8)]
"""

CASES = {
    "syntax": ("def f(:\n  pass\n", r"operator_file\.py:1: syntax error"),
    "bytes": ("\x00\x01", "not Python text"),
    "package": ("import einops_of_nowhere\n", r"operator_file\.py:1 imports einops_of_nowhere"),
    "import": ("A = 1\nB = A / 0\n", r"operator_file\.py:2: importing the file failed: ZeroDiv"),
    "exit": ("import sys\nsys.exit(3)\n", r"operator_file\.py:2: importing the file failed"),
    "interrupted": ("raise KeyboardInterrupt\n", r"operator_file\.py:1: importing the file failed"),
    "nothing": ("A = 1\n", "looked for class Model with get_inputs"),
    "no inputs": (MODEL, r"operator_file\.py:5: Model needs a get_inputs\(\)"),
    "no model": ("import torch\n" + INPUTS, "no class Model"),
    "not a module": ("import torch\nclass Model: pass\n" + INPUTS, "not a subclass"),
    "two functions": (
        "def inputs(): return []\ndef f(x): return x\ndef g(x): return x\n",
        "several functions .*--reference f",
    ),
    "no function": ("def inputs(): return []\n", "no public function"),
    "inputs": (
        MODEL + "def get_inputs():\n    return [1 / 0]\n",
        r"operator_file\.py:9: get_inputs",
    ),
    "inputs type": (MODEL + "def get_inputs():\n    return 3\n", "must return a list"),
    "too many": (MODEL + "def get_inputs():\n    return [1, 2]\n", "do not fit the call"),
    "task type": (MODEL + INPUTS + "TASK = 3\n", "must be a dictionary"),
    "task key": (MODEL + INPUTS + "TASK = {'shape': []}\n", "'shape'; did you mean 'shapes'"),
    "task value": (MODEL + INPUTS + "TASK = {'mode': 'fast'}\n", "wrong value.*mode"),
    "task dtype": (MODEL + INPUTS + "TASK = {'dtypes': 'floa16'}\n", "did you mean 'float16'"),
    "task rank": (MODEL + INPUTS + "TASK = {'shapes': [(4,)]}\n", "a tensor of 2 dimensions"),
    "task count": (MODEL + INPUTS + "TASK = {'shapes': [((4, 8), (4, 8))]}\n", "call has 1 tens"),
    "task vary": (MODEL + INPUTS + "TASK = {'vary': 'y.0'}\n", "did you mean 'x'"),
}


@pytest.mark.parametrize("case", CASES)
async def test_usage(case, written, opened):
    text, sentence = CASES[case]
    with pytest.raises(UsageError, match=sentence) as raised:
        await opened(written(text))
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


async def test_paths(tmp_path, opened):
    with pytest.raises(UsageError, match="There is no file"):
        await opened(tmp_path / "missing.py")
    with pytest.raises(UsageError, match="is a directory"):
        await opened(tmp_path)
    (tmp_path / "kernel.cu").write_text("int x;")
    with pytest.raises(UsageError, match=r"must end in \.py"):
        await opened(tmp_path / "kernel.cu")


async def test_an_unknown_reference_is_answered_with_what_there_is(written, opened):
    path = written("import torch\ndef f(x): return x\ndef inputs(): return [torch.ones(2)]\n")
    with pytest.raises(UsageError, match="has no g; it has f"):
        await opened(path, reference="g")


FAILING = {
    "shapes": ("return x @ x", 7),
    "values": ("return x[torch.full((3,), 99)]", 7),
    "attribute": ("return self.nothing", 7),
}


@pytest.mark.parametrize("case", FAILING)
async def test_a_reference_that_fails_on_its_own_inputs(case, written, opened):
    body, line = FAILING[case]
    path = written(MODEL.replace("return x + 1", body) + INPUTS)
    with pytest.raises(
        ReferenceFailed, match=rf"operator_file\.py:{line}: the reference"
    ) as raised:
        await opened(path)
    assert raised.value.line == line
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernel would run here")
async def test_a_triton_reference_needs_a_gpu(written, opened):
    path = written(
        """
        import torch, triton
        import triton.language as tl

        @triton.jit
        def twice_kernel(x, n, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            tl.store(x + at, 2 * tl.load(x + at, at < n), at < n)

        def twice(x):
            twice_kernel[(1,)](x, x.numel(), BLOCK=64)
            return x

        def inputs(): return [torch.ones(64)]
        """
    )
    with pytest.raises(UsageError, match=r"_file\.py:11 launches a Triton kernel"):
        await opened(path, reference="twice")


async def test_a_constructor_that_fails(written, opened):
    text = (
        MODEL + "    def __init__(self):\n        super().__init__()\n        self.a = int('x')\n"
    )
    with pytest.raises(ReferenceFailed, match="building Model failed: ValueError"):
        await opened(written(text + INPUTS))


async def test_a_file_that_never_ends(written, device):
    target = msgspec.to_builtins(card("sm_90"))
    job = {"file": str(written("while True:\n    pass\n")), "target_card": target}
    result = await device.run("mtmc_engine.capture.worker:open_task", job, Limits(wall_s=1))
    with pytest.raises(ReferenceFailed, match="took longer than 1 s"):
        task_of(result)


async def test_a_file_that_ends_its_process(written, device):
    target = msgspec.to_builtins(card("sm_90"))
    for body, sentence in (("os._exit(0)", "without an answer"), ("os.abort()", "SIGABRT")):
        path = written(f"import os\n{body}\n")
        job = {"file": str(path), "target_card": target}
        with pytest.raises(ReferenceFailed, match=sentence):
            task_of(await device.run("mtmc_engine.capture.worker:open_task", job))

"""How far results move when inputs are rounded once more, as the reference's process finds it."""

import msgspec
import pytest
import torch
from timing_court import HEAD

from mtmc_engine.core.task import Policy
from mtmc_engine.proof.wire import Build, Case
from mtmc_engine.proof.work.truth import make_truths
from mtmc_engine.proof.work.widen import Jitter, perturbed

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x - x[:1]

def get_inputs():
    return [torch.randn(40, 12)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def truth_of(tmp_path):
    file = tmp_path / "conditioning_operator.py"
    file.write_text(HEAD + REFERENCE)

    def ask(layout):
        case = Case("case", ((19, 12),), ("float32",), layout, "own", 0, 0)
        build = Build(str(file), "Model", Policy(), 0, "cpu")
        folder = tmp_path / layout
        folder.mkdir()
        request = {"build": build, "cases": (case,), "inputs": str(folder), "truths": str(folder)}
        (truth,) = make_truths(msgspec.to_builtins(request), lambda told: None).cases
        return truth.outputs[0]

    return ask


def test_equal_rows_are_rounded_one_by_one(truth_of):
    # The rows of an expanded input are equal, so that every difference is exactly zero: an
    # algorithm that rounds its rows in another order is not.
    expanded, contiguous = truth_of("expanded"), truth_of("contiguous")
    assert expanded.scale.largest == 0
    assert expanded.condition.largest > 2**-24
    assert 0.2 < expanded.condition.largest / contiguous.condition.largest < 5


def test_batch_norm_of_a_library_is_taken_apart():
    x = torch.ones(19, 12, dtype=torch.float64) * torch.linspace(1, 2, 12, dtype=torch.float64)
    scale, offset = torch.ones(12, dtype=torch.float64), torch.zeros(12, dtype=torch.float64)
    with Jitter(2.0**-24, torch.Generator().manual_seed(0)):
        out = torch.ops.aten.cudnn_batch_norm(
            x, scale, offset, torch.zeros_like(scale), torch.ones_like(scale), True, 0.1, 1e-5
        )[0]
    assert 2**-24 * 100 < float(out.abs().max()) < 2**-24 * 2000


def test_each_element_of_an_expanded_tensor_is_moved_on_its_own():
    value = torch.ones(1, 4, dtype=torch.float64).expand(50, 4)
    moved = perturbed(value, 1e-3, torch.Generator().manual_seed(0))
    assert len(moved[:, 0].unique()) == 2

"""Reference and candidate lie on the device, with all tensors that they keep."""

import pytest
import torch
from timing_court import HEAD

from mtmc_engine.core.task import Policy
from mtmc_engine.proof.wire import Build, CandidateCode
from mtmc_engine.proof.work.build import (
    build_candidate,
    build_reference,
    find_entry,
    import_candidate,
    open_reference,
)

REFERENCE = """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 24, bias=False)
        self.offset = torch.linspace(0, 1, 24)

    def forward(self, x):
        return self.linear(x) + self.offset

def get_inputs():
    return [torch.randn(20, 32)]

def get_init_inputs():
    return [32]
"""
PACKED = """
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 24, bias=False)
        self.packed = [self.linear.weight.detach().t().contiguous()]
        self.offset = {"end": torch.linspace(0, 1, 24)}

    def forward(self, x):
        return x @ self.packed[0] + self.offset["end"]
"""
FROM_REFERENCE = """
class ModelNew(nn.Module):
    @classmethod
    def from_reference(cls, model):
        new = cls()
        new.packed = model.linear.weight.t() + torch.zeros(32, 24)
        new.offset = model.offset
        return new

    def forward(self, x):
        return x @ self.packed + self.offset
"""


@pytest.fixture
def built(tmp_path):
    """A reference and a candidate, on a device that is not where constructors run."""

    def make(source, weights, device):
        file = tmp_path / "building_operator.py"
        file.write_text(HEAD + REFERENCE)
        path = tmp_path / "building_candidate.py"
        path.write_text(HEAD + source)
        build = Build(str(file), "Model", Policy(), 3, device)
        reference = open_reference(build)
        model = build_reference(reference, build)
        code = CandidateCode(str(path), path.stem, str(tmp_path), weights)
        entry = find_entry(import_candidate(code), reference)
        return model, build_candidate(entry, reference, build, model, weights)

    return make


@pytest.mark.parametrize(
    ("source", "weights"), [(PACKED, "seed"), (FROM_REFERENCE, "from_reference")]
)
def test_what_a_constructor_makes_lies_on_the_device(built, source, weights):
    for program in built(source, weights, "meta"):
        with torch.no_grad():
            out = program(torch.empty(20, 32, device="meta"))
        assert out.device.type == "meta"


def test_packed_weights_are_the_references(built):
    model, candidate = built(PACKED, "seed", "cpu")
    assert torch.equal(candidate.packed[0], model.linear.weight.detach().t())

"""Candidates that reach for the tool's own objects in their process get a verdict all the same."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x * 2 + 1

def get_inputs():
    return [torch.randn(24, 40)]

def get_init_inputs():
    return []
"""

FIND = """
import sys

def actor():
    frame = sys._getframe()
    while frame and not hasattr(frame.f_locals.get("self", None), "request"):
        frame = frame.f_back
    return frame.f_locals["self"]
"""

CANDIDATE = """
{before}
class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""

EMPTY = '{"leaves": {}, "structure": "tensor", "facts": {}}'
LISTS = '{"leaves": [], "structure": 3, "facts": "none"}'


@pytest.mark.parametrize(
    "body",
    [
        f"me = actor(); me._keep = lambda *a: None; me._put('result-0.0', {EMPTY}); return x",
        f"me = actor(); me._taken = lambda value: {LISTS}; return x",
        f"me = actor(); me._taken = lambda value: {EMPTY}; return x",
        "me = actor(); me._keep = lambda *a: None; return x",
    ],
    ids=["other files", "lists", "nothing", "no files"],
)
def test_forged_results(court, body):
    found = court.verdict(REFERENCE, CANDIDATE.format(before=FIND, body=body))
    assert found.verdict in ("SUSPICIOUS", "SHAPE"), found.reason


PATCHES = """
for name, module in list(sys.modules.items()):
            if name.startswith("mtmc_engine.proof"):
                for function in ("_same", "_facts", "_plain"):
                    if hasattr(module, function):
                        setattr(module, function, lambda *given: True)
        return torch.zeros_like(x)
"""


def test_replaced_functions_of_the_tool(court):
    found = court.verdict(REFERENCE, CANDIDATE.format(before="import sys", body=PATCHES.strip()))
    assert found.verdict == "SUSPICIOUS", found.reason


AT_THE_FIRST_CALL = """
time.perf_counter = lambda: 0.0
        torch.equal = lambda *a, **k: True
        torch.Tensor.clone = lambda tensor, **k: tensor
        torch.Tensor.copy_ = lambda tensor, *a, **k: tensor
        y = x * 2 + 1
        x.zero_()
        return y
"""


@pytest.mark.case(31)
def test_functions_replaced_while_it_is_called(court):
    source = CANDIDATE.format(before="import time", body=AT_THE_FIRST_CALL.strip())
    found = court.verdict(REFERENCE, source)
    assert found.verdict == "MUTATED_INPUT", found.reason
    reached = [warning for warning in found.warnings if "was replaced" in warning]
    assert not reached or "torch.equal" in " ".join(reached)


@pytest.mark.case(3)
@pytest.mark.parametrize(
    "way",
    [
        "torch.Tensor(*x.shape)",
        "torch.empty(0).resize_(x.shape)",
        "torch.zeros(()).set_(torch.UntypedStorage(x.numel() * 4), 0, x.shape)",
        "torch.from_numpy(numpy.empty(tuple(x.shape), dtype='float32'))",
    ],
)
def test_memory_from_elsewhere_is_poison_too(court, way):
    source = CANDIDATE.format(before="import numpy", body=f"return {way}")
    found = court.verdict(REFERENCE, source)
    assert found.verdict == "NUMERIC", found.reason
    assert found.evidence["wrong_elements"] > 0.9 * 24 * 40

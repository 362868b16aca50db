"""What the reference cannot do in a case is an outcome with a reason, never a lost worker."""

import math

import pytest
import torch

from mtmc_engine.capture.load import load_reference
from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.core.task import Policy
from mtmc_engine.proof.wire import Build, Case
from mtmc_engine.proof.work import truth as truth_work
from mtmc_engine.proof.work.exchange import put, take
from mtmc_engine.proof.work.rehearsal import may_index

LOOK_UP = """
import torch

def picked(x, i):
    return x[i] * 2

def inputs():
    return [torch.randn(40, 3), torch.randint(0, 40, (5,))]
"""
NUMBERS = """
import math
import torch

def scaled(x):
    return x * math.exp(float(x.abs().max()) * {factor})

def inputs():
    return [torch.linspace(0.5, 1.0, 12)]
"""


def witness_of(tmp_path, source, device="cpu"):
    path = tmp_path / "reasoned.py"
    path.write_text(source)
    reference = load_reference(str(path))
    build = Build(str(path), reference.entry, Policy(), 0, "cpu")
    request = truth_work.Request(build, (), str(tmp_path), str(tmp_path))
    found = truth_work._Witness(reference, reference.target, request)
    found.build = Build(str(path), reference.entry, Policy(), 0, device)
    return found


def case(shapes, dtypes, **changes):
    fields = {"layout": "contiguous", "distribution": "own", "seed": 0, "group": 0, **changes}
    return Case("a case", shapes, dtypes, **fields)


def test_a_case_that_the_cpu_refuses_never_reaches_the_device(tmp_path, monkeypatch):
    witness = witness_of(tmp_path, LOOK_UP, device="cuda")
    calls = []
    monkeypatch.setattr(witness, "_call", lambda *_: calls.append("device"))
    monkeypatch.setattr(witness.draw, "inputs", lambda _: [torch.randn(4, 3), torch.tensor([7])])
    found = witness.testify(case(((4, 3), (1,)), ("float32", "int64")))
    assert found.skipped == "the reference refuses it (IndexError)"
    assert calls == []


def test_the_files_own_shapes_need_no_rehearsal(tmp_path, monkeypatch):
    witness = witness_of(tmp_path, LOOK_UP, device="cuda")
    rehearsed = []
    monkeypatch.setattr(truth_work, "rehearse", lambda *_: rehearsed.append("cpu"))
    own = ((40, 3), (5,))
    inputs = [torch.randn(40, 3), torch.tensor([1, 2, 3, 4, 5])]
    witness._rehearse(case(own, ("float32", "int64"), own=True), inputs)
    witness._rehearse(case(own, ("float32", "int64"), distribution="times 3"), inputs)
    assert rehearsed == []
    witness._rehearse(case(((41, 3), (5,)), ("float32", "int64")), inputs)
    assert rehearsed == ["cpu"]


def test_only_integers_may_index():
    assert may_index([torch.randn(3), {"a": torch.tensor([1])}])
    assert not may_index([torch.randn(3), torch.tensor([True]), 3])


def test_numbers_that_overflow_beside_the_inputs_are_left_out(tmp_path):
    witness = witness_of(tmp_path, NUMBERS.format(factor=700.0))
    found = witness.testify(case(((12,),), ("float32",), own=True))
    assert found.skipped == ""
    found = witness.testify(case(((12,),), ("float32",), distribution="times 3"))
    assert found.skipped == "the reference refuses it (OverflowError)"


def test_an_exact_result_that_cannot_be_had_is_the_references_error(tmp_path, monkeypatch):
    witness = witness_of(tmp_path, NUMBERS.format(factor=1.0))

    def fails(*_):
        raise OverflowError("math range error")

    monkeypatch.setattr(witness, "_facts", fails)
    with pytest.raises(ReferenceFailed, match="cannot be computed"):
        witness.testify(case(((12,),), ("float32",), own=True))
    assert "cannot be computed" in witness.testify(case(((12,),), ("float32",))).skipped


def test_order_in_memory_dtypes_and_complex_numbers_pass_between_processes(tmp_path):
    image = torch.randn(2, 6, 4, 5).contiguous(memory_format=torch.channels_last)
    value = [image, torch.bfloat16, 1 + 2j, torch.randn(3, 4).t()]
    fingerprint = put(tmp_path, "value", value, "key")
    found = take(tmp_path, "value", "cpu", "key", fingerprint)
    assert torch.equal(found[0], image)
    assert found[0].stride() == image.stride()
    assert found[1:3] == [torch.bfloat16, 1 + 2j]
    assert found[3].stride() == value[3].stride()
    assert math.isclose(float(found[3].sum()), float(value[3].sum()))

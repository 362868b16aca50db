"""Mistakes in the user's file: said as such, with file and line, never held against a candidate."""

import pytest

from mtmc_engine.core.errors import MtmcError, ReferenceFailed
from mtmc_engine.proof.prove import Bounds

CANDIDATE = """
class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
"""

FILE = """
{task}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}

def get_inputs():
    {inputs}

def get_init_inputs():
    return []
"""


def file(task="", init="pass", forward="return x * 2", inputs="return [torch.randn(6, 8)]"):
    return FILE.format(task=task, init=init, forward=forward, inputs=inputs)


def error_of(court, reference):
    with pytest.raises(MtmcError) as caught:
        court.verdict(reference, CANDIDATE)
    return caught.value


@pytest.mark.parametrize(
    "reference",
    [
        file(forward="return x.reshape(7, 7)"),
        file(forward="return undefined_name(x)"),
        file(init="self.w = nn.Parameter(torch.ones(3) + torch.ones(4))"),
    ],
    ids=["shape", "name", "constructor"],
)
def test_a_failing_operator(court, reference):
    error = error_of(court, reference)
    assert isinstance(error, ReferenceFailed)
    assert error.line > 6
    assert f"operator_file.py:{error.line}" in str(error)


@pytest.mark.parametrize(
    ("reference", "word"),
    [
        (file(inputs="return [torch.randn(6, 8) + missing]"), "missing"),
        (file(inputs="return 3"), "get_inputs"),
        (file(task='TASK = {"precison": "tf32"}'), "precision"),
        (file(task='TASK = {"nan": "sometimes"}'), "nan"),
        (file().replace("class Model(", "class Other("), "Model"),
        (file(task="import no_such_module_anywhere"), "no_such_module_anywhere"),
    ],
    ids=["inputs", "not a list", "policy", "value", "class", "import"],
)
def test_a_file_that_cannot_be_used(court, reference, word):
    error = error_of(court, reference)
    assert error.exit_code == 2
    assert word in str(error)
    assert "operator_file.py" in str(error)


def test_a_reference_that_does_not_end(court):
    """It is quick at first, so that the task opens, and hangs while it is a witness."""
    reference = file(
        task="import time, pathlib\nMARK = pathlib.Path(__file__).with_suffix('.mark')",
        forward="time.sleep(0 if not MARK.exists() else 60)\n        return x * 2",
    )
    folder = court.place(reference)
    task = court.open(folder / "operator_file.py")
    (folder / "operator_file.mark").touch()
    found = court.judge(task, folder, CANDIDATE, bounds=Bounds(reference_s=2))
    assert found.verdict == "REFERENCE_ERROR"
    assert "did not finish" in found.reason
    assert found.evidence["file"].endswith("operator_file.py")


def test_a_reference_that_refuses_float64_is_its_own_truth(court):
    reference = file(
        forward="assert x.dtype == torch.float32, 'only float32'\n"
        "        return torch.softmax(x, -1)"
    )
    right = CANDIDATE.replace("x * 2", "torch.exp(torch.log_softmax(x, -1))")
    wrong = CANDIDATE.replace("x * 2", "torch.softmax(x * 1.001, -1)")
    found = court.verdict(reference, right)
    assert found.verdict == "UNTIMED", found.reason
    assert any("float64" in warning for warning in found.warnings)
    assert court.verdict(reference, wrong).verdict == "NUMERIC"


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        ("return x * 0", "zeros would pass"),
        ("return x + 0", "input 0 itself would pass"),
        ("return torch.softmax(x, -1).sum(-1)", "does not depend"),
        ("return torch.softmax(x, -1).sum(-1)", "its mean would pass"),
        ("return x * 1e-7", "absolute tolerance"),
    ],
)
def test_weak_tasks_are_said_to_be_weak(court, forward, words):
    found = court.verdict(file(forward=forward), CANDIDATE.replace("x * 2", forward[7:]))
    assert any(words in warning for warning in found.warnings), found.warnings
    if found.proven:
        values = next(gate for gate in found.gates if gate.gate == "values")
        assert any(words in sentence for sentence in values.evidence["weak"])

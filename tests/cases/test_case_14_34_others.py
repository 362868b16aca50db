"""In-place work that nobody declared, wrong types, wrong shapes, and a reference that fails."""

import pytest

from mtmc_engine.core.errors import ReferenceFailed

LOSS = """
{task}
class Model(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits, target)

def get_inputs():
    return [torch.randn(24, 10), torch.randint(0, 10, (24,))]

def get_init_inputs():
    return []
"""

OVERWRITES_LOGITS = """
class ModelNew(nn.Module):
    def forward(self, logits, target):
        picked = logits.gather(1, target[:, None])
        loss = (torch.logsumexp(logits, 1, keepdim=True) - picked).mean()
        logits.copy_(torch.softmax(logits, 1))
        return loss
"""


def test_overwritten_logits(court):
    verdict = court.verdict(LOSS.format(task=""), OVERWRITES_LOGITS)
    assert verdict.verdict == "MUTATED_INPUT"
    assert "logits" in verdict.reason


def test_overwritten_logits_where_declared(court):
    verdict = court.verdict(LOSS.format(task='TASK = {"inplace": True}'), OVERWRITES_LOGITS)
    assert verdict.verdict == "UNTIMED", verdict.reason


POINTWISE = """
class Model(nn.Module):
    def forward(self, x):
        return x.abs()

def get_inputs():
    return [torch.randn(12, 10)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("verdict", "body"),
    [
        ("SHAPE", "return x.abs()[:, :-1]"),
        ("DTYPE", "return x.abs().double()"),
        ("DTYPE", "return (x.abs(), x)"),
        ("DTYPE", "return 3.0"),
        ("LAYOUT", "return x.abs().to('meta')"),
        ("NONFINITE", "return x.abs() / (x != x.flatten()[0])"),
        ("RUNTIME", "return undefined(x)"),
    ],
)
def test_results_of_another_form(court, verdict, body):
    candidate = f"""
    class ModelNew(nn.Module):
        def forward(self, x):
            {body}
    """
    found = court.verdict(POINTWISE, candidate)
    assert found.verdict == verdict, found.reason


def test_a_view_of_the_input(court):
    reference = POINTWISE.replace("x.abs()", "x + 0")
    candidate = """
    class ModelNew(nn.Module):
        def forward(self, x):
            return x
    """
    assert court.verdict(reference, candidate).verdict == "ALIASED"


def test_a_stale_result_for_fresh_contents(court):
    candidate = """
    kept = {}

    class ModelNew(nn.Module):
        def forward(self, x):
            key = (x.data_ptr(), tuple(x.shape))
            if key not in kept:
                kept[key] = x.abs()
            return kept[key]
    """
    assert court.verdict(POINTWISE, candidate).verdict == "NUMERIC"


def test_uninitialised_memory(court):
    candidate = """
    class ModelNew(nn.Module):
        def forward(self, x):
            return torch.empty_like(x)
    """
    found = court.verdict(POINTWISE, candidate)
    assert found.verdict == "NUMERIC"
    assert "never written" in found.reason


def test_a_reference_that_fails_is_not_the_candidates_fault(court):
    reference = POINTWISE.replace("x.abs()", "x.reshape(7, 7)")
    with pytest.raises(ReferenceFailed) as caught:
        court.verdict(reference, "class ModelNew(nn.Module):\n    pass\n")
    assert caught.value.line

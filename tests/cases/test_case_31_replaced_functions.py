"""Replacing the checker's tools changes nothing but the list of warnings."""

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x.relu()

def get_inputs():
    return [torch.randn(16, 16)]

def get_init_inputs():
    return []
"""

PATCHED = """
torch.allclose = lambda *a, **k: True
torch.equal = lambda *a, **k: True
torch.cuda.synchronize = lambda *a, **k: None
torch.cuda.Event.elapsed_time = lambda *a, **k: 1e-6

class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""


def test_a_wrong_one_stays_wrong(court):
    verdict = court.verdict(REFERENCE, PATCHED.format(body="return x * 1.5"))
    assert verdict.verdict == "NUMERIC"
    assert any("torch.allclose was replaced" in warning for warning in verdict.warnings)


def test_mutation_is_seen_all_the_same(court):
    body = "y = x.relu(); x.add_(1); return y"
    verdict = court.verdict(REFERENCE, PATCHED.format(body=body))
    assert verdict.verdict == "MUTATED_INPUT"

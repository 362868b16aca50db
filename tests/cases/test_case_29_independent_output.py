"""The mean over a softmax is always 1/n: nothing that is proven about it means much."""

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1).mean()

def get_inputs():
    return [torch.randn(8, 64)]

def get_init_inputs():
    return []
"""

CONSTANT = """
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x * 0, dim=-1).mean()
"""


def test_the_task_is_said_to_be_weak(court):
    verdict = court.verdict(REFERENCE, CONSTANT)
    assert any("does not depend" in warning for warning in verdict.warnings)


def test_no_gain_is_claimed_on_it(court):
    verdict = court.verdict(REFERENCE, CONSTANT)
    assert verdict.verdict != "FASTER"
    values = next(gate for gate in verdict.gates if gate.gate == "values")
    assert any("does not depend" in sentence for sentence in values.evidence["weak"])

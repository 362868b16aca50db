"""A candidate that zeroes its inputs makes the reference agree with it, if that runs second."""

REFERENCE = """
class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(64, 48), torch.randn(48, 80)]

def get_init_inputs():
    return []
"""

ZEROED = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        a.zero_()
        b.zero_()
        return torch.zeros(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
"""

SCALED_IN_PLACE = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        result = a @ b
        a.mul_(2)
        return result
"""


def test_zeroed_inputs(court):
    verdict = court.verdict(REFERENCE, ZEROED)
    assert verdict.verdict == "MUTATED_INPUT"
    assert "also" in verdict.evidence


def test_inputs_changed_after_a_right_result(court):
    verdict = court.verdict(REFERENCE, SCALED_IN_PLACE)
    assert verdict.verdict == "MUTATED_INPUT"
    assert " a " in verdict.reason

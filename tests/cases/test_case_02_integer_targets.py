"""Class indices stay integers, whatever type the floating-point inputs get."""

import pytest

REFERENCE = """
TASK = {{"dtypes": ["{dtype}"]}}

class Model(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits, target)

def get_inputs():
    return [torch.randn(24, 10), torch.randint(0, 10, (24,))]

def get_init_inputs():
    return []
"""

CANDIDATE = """
class ModelNew(nn.Module):
    def forward(self, logits, target):
        assert target.dtype == torch.int64 and logits.dtype == torch.{dtype}
        wide = logits.float()
        picked = wide.gather(1, target[:, None]).squeeze(1)
        return (torch.logsumexp(wide, 1) - picked).mean().to(logits.dtype)
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_targets_stay_int64(court, dtype):
    found = court.verdict(REFERENCE.format(dtype=dtype), CANDIDATE.format(dtype=dtype))
    assert found.verdict == "UNTIMED", found.reason
    assert not any("not implemented" in warning for warning in found.warnings)


def test_a_wrong_loss_is_still_found(court):
    wrong = CANDIDATE.format(dtype="float16").replace(".mean()", ".mean().mul(1.05)")
    assert court.verdict(REFERENCE.format(dtype="float16"), wrong).verdict == "NUMERIC"

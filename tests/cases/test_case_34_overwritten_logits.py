"""A loss that overwrites its logits: reported, unless the user declared in-place work."""

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

"""Results of several tensors: named ones, parts of one allocation, and one given twice."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return {result}

def get_inputs():
    return [torch.randn(24, 40)]

def get_init_inputs():
    return []
"""

CANDIDATE = """
class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""

BY_SORT = (
    "v, i = x.sort(-1, descending=True)\n"
    "        return v[..., :5].contiguous(), i[..., :5].contiguous()"
)
BY_ARGMAX = "i = x.argmax(-1); return x.gather(-1, i[..., None])[..., 0], i"
PARTS = (
    "out = torch.empty(2, *x.shape, device=x.device, dtype=x.dtype)\n"
    "        out[0] = x + 1; out[1] = x - 1; return out[0], out[1]"
)


@pytest.mark.parametrize(
    ("result", "body", "verdict"),
    [
        ("x.topk(5, -1)", BY_SORT, "UNTIMED"),
        ("x.topk(5, -1)", BY_SORT.replace("descending=True", "descending=False"), "NUMERIC"),
        ("x.max(-1)", BY_ARGMAX, "UNTIMED"),
        ("x.max(-1)", BY_ARGMAX.replace("x.argmax(-1)", "x.abs().argmax(-1)"), "NUMERIC"),
        ("x.max(-1)", "return list(x.max(-1))", "UNTIMED"),
        ("x.max(-1)", "return x.max(-1)[0]", "DTYPE"),
        ("(x + 1, x - 1)", PARTS, "UNTIMED"),
        ("(x + 1, x + 1)", "y = x + 1; return y, y", "ALIASED"),
        ("(x + 1, x + 1)", "y = x + 1; return y, y[:, :]", "ALIASED"),
        ("(x + 1, x + 1)", "return x + 1, x + 1", "UNTIMED"),
    ],
)
def test_verdict(court, result, body, verdict):
    found = court.verdict(REFERENCE.format(result=result), CANDIDATE.format(body=body))
    assert found.verdict == verdict, found.reason


def test_a_result_that_the_reference_gives_twice(court):
    twice = REFERENCE.format(result="[x * 2] * 2")
    found = court.verdict(twice, CANDIDATE.format(body="y = x * 2; return [y, y]"))
    assert found.verdict == "UNTIMED", found.reason
    found = court.verdict(twice, CANDIDATE.format(body="return [x * 2, x * 2]"))
    assert found.verdict == "UNTIMED", found.reason

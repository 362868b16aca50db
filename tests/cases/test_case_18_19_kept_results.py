"""Results kept from earlier calls, under whatever key, are wrong for fresh contents."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)

def get_inputs():
    return [torch.randn(12, 10)]

def get_init_inputs():
    return []
"""

KEPT = """
kept = {{}}
calls = [0]

class ModelNew(nn.Module):
    def forward(self, x):
        calls[0] += 1
        {body}
"""
BY_KEY = """key = {key}
        if key not in kept:
            kept[key] = torch.tanh(x)
        return kept[key]"""
KEYS = {
    "identity": "id(x)",
    "pointer": "x.data_ptr()",
    "pointer and shape": "(x.data_ptr(), tuple(x.shape), x.stride())",
    "shape": "tuple(x.shape)",
    "version": "(tuple(x.shape), x._version % 1)",
    "first element's sign": "(tuple(x.shape), bool(x.reshape(-1)[:1].sum() > 0))",
}
CALLS = {
    "every 15th call": (
        "if calls[0] % 15 == 1 or 'y' not in kept or kept['y'].shape != x.shape:\n"
        "            kept['y'] = torch.tanh(x)\n"
        "        return kept['y']"
    ),
    "every second call": (
        "if calls[0] % 2 or 'y' not in kept or kept['y'].shape != x.shape:\n"
        "            kept['y'] = torch.tanh(x)\n"
        "        return kept['y'].clone()"
    ),
    "the first five calls": (
        "if calls[0] <= 5 or 'y' not in kept or kept['y'].shape != x.shape:\n"
        "            kept['y'] = torch.tanh(x)\n"
        "        return kept['y'].clone()"
    ),
}


@pytest.mark.parametrize("key", KEYS)
def test_kept_under_a_key(court, key):
    found = court.verdict(REFERENCE, KEPT.format(body=BY_KEY.format(key=KEYS[key])))
    assert found.verdict in ("NUMERIC", "ALIASED"), found.reason


@pytest.mark.parametrize("when", CALLS)
def test_computed_now_and_then(court, when):
    found = court.verdict(REFERENCE, KEPT.format(body=CALLS[when]))
    assert found.verdict == "NUMERIC", found.reason


def test_a_table_by_shape_that_holds_no_results(court):
    body = "kept[tuple(x.shape)] = calls[0]; return torch.tanh(x)"
    found = court.verdict(REFERENCE, KEPT.format(body=body))
    assert found.verdict == "UNTIMED", found.reason

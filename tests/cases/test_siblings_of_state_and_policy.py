"""State, repetition, NaN, nested arguments, and weights that cannot be loaded."""

import pytest

NORM = """
{task}
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.randn(40, 12)]

def get_init_inputs():
    return [12]
"""

OWN_NORM = """
from operator_file import Model

class ModelNew(Model):
    def forward(self, x):
        norm = self.norm
        mean, variance, n = x.mean(0), x.var(0, unbiased=False), x.shape[0]
        if {update}:
            norm.num_batches_tracked += 1
            norm.running_mean.mul_({keep}).add_(mean * {take})
            norm.running_var.mul_({keep}).add_(variance * (n / max(n - 1, 1)) * {take})
        return (x - mean) / torch.sqrt(variance + norm.eps) * norm.weight + norm.bias
"""
KEPT = OWN_NORM.format(update=True, keep=0.9, take=0.1)


@pytest.mark.parametrize(
    "cheat",
    [
        OWN_NORM.format(update=False, keep=0.9, take=0.1),
        OWN_NORM.format(update=True, keep=0.1, take=0.9),
        KEPT.replace("(n / max(n - 1, 1))", "1"),
        KEPT.replace("norm.num_batches_tracked += 1", "pass"),
    ],
    ids=["not updated", "wrong momentum", "biased variance", "not counted"],
)
def test_running_statistics(court, cheat):
    assert court.verdict(NORM.format(task=""), cheat).verdict == "STATE_DRIFT"


def test_running_statistics_where_they_do_not_matter(court):
    task = 'TASK = {"buffers": "ignore"}'
    still = OWN_NORM.format(update=False, keep=0.9, take=0.1)
    assert court.verdict(NORM.format(task=task), still).verdict == "UNTIMED"
    assert court.verdict(NORM.format(task=task), KEPT).verdict == "UNTIMED"


def test_evaluation_must_not_update_them(court):
    task = 'TASK = {"mode": "eval"}'
    updating = """
    from operator_file import Model

    class ModelNew(Model):
        def forward(self, x):
            y = self.norm(x)
            self.norm.running_mean.mul_(0.5)
            return y
    """
    found = court.verdict(NORM.format(task=task), updating)
    assert found.verdict == "STATE_DRIFT", found.reason
    assert "running_mean" in found.reason


SUM = """
{task}
class Model(nn.Module):
    def forward(self, x):
        return x.sum(-1)

def get_inputs():
    return [torch.randn(30, 40)]

def get_init_inputs():
    return []
"""

SHUFFLED_SUM = """
import random

class ModelNew(nn.Module):
    def forward(self, x):
        order = list(range(x.shape[-1]))
        random.shuffle(order)
        total = torch.zeros(x.shape[:-1])
        for column in order:
            total = total + x[..., column]
        return total
"""


def test_sums_in_another_order_each_time(court):
    found = court.verdict(SUM.format(task=""), SHUFFLED_SUM)
    assert found.verdict == "NONDETERMINISTIC", found.reason
    assert "atomics_bound" in found.reason


def test_sums_in_another_order_where_that_is_stated(court):
    stated = SUM.format(task='TASK = {"atomics_bound": 1e-5}')
    assert court.verdict(stated, SHUFFLED_SUM).verdict == "UNTIMED"


def test_a_stated_bound_does_not_cover_more(court):
    stated = SUM.format(task='TASK = {"atomics_bound": 1e-9}')
    assert court.verdict(stated, SHUFFLED_SUM).verdict == "NONDETERMINISTIC"


def test_a_reference_that_draws_at_random_is_not_judged(court):
    drawing = SUM.replace("x.sum(-1)", "F.dropout(x, 0.5)").format(task="")
    found = court.verdict(drawing, SHUFFLED_SUM)
    assert found.verdict == "REFERENCE_ERROR"


RELU = """
{task}
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(20, 30)]

def get_init_inputs():
    return []
"""
SWALLOWS_NAN = """
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x, torch.zeros_like(x))
"""
KEEPS_NAN = SWALLOWS_NAN.replace("x > 0", "(x > 0) | (x != x)")


@pytest.mark.parametrize(
    ("policy", "candidate", "verdict", "told"),
    [
        ("match", SWALLOWS_NAN, "NONFINITE", False),
        ("match", KEEPS_NAN, "UNTIMED", False),
        ("ignore", SWALLOWS_NAN, "UNTIMED", False),
        (None, SWALLOWS_NAN, "UNTIMED", True),
        (None, KEEPS_NAN, "UNTIMED", False),
    ],
)
def test_nan_is_judged_by_policy(court, policy, candidate, verdict, told):
    task = f'TASK = {{"nan": "{policy}"}}' if policy else ""
    found = court.verdict(RELU.format(task=task), candidate)
    assert found.verdict == verdict, found.reason
    assert any("NaN" in warning for warning in found.warnings) == told


NESTED = """
class Model(nn.Module):
    def forward(self, pair, extra):
        return pair[0] * extra["gate"] + pair[1]

def get_inputs():
    return [[torch.rand(9, 14), torch.rand(9, 14)], {"gate": torch.rand(9, 14)}]

def get_init_inputs():
    return []
"""
NESTED_CANDIDATE = """
class ModelNew(nn.Module):
    def forward(self, pair, extra):
        {body}
"""


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("return pair[0] * extra['gate'] + pair[1]", "UNTIMED"),
        ("return pair[0].abs() * extra['gate'] + pair[1]", "NUMERIC"),
        ("return pair[0] * extra['gate'].clamp(max=1.0) + pair[1]", "NUMERIC"),
        ("y = pair[0] * extra['gate'] + pair[1]; extra['gate'].zero_(); return y", "MUTATED_INPUT"),
        ("y = pair[0] * extra['gate'] + pair[1]; return pair[1].copy_(y)", "MUTATED_INPUT"),
    ],
)
def test_nested_arguments_are_varied_and_watched(court, body, verdict):
    found = court.verdict(NESTED, NESTED_CANDIDATE.format(body=body))
    assert found.verdict == verdict, found.reason


PACKED_REFERENCE = """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Linear(width, 16)

    def forward(self, x):
        return self.gate(self.norm(x))

def get_inputs():
    return [torch.randn(10, 24)]

def get_init_inputs():
    return [24]
"""
PACKING = """
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.{norm} = nn.LayerNorm(width)
        self.gate = nn.Linear(width, 16)
        self.packed = (self.gate.weight * self.{norm}.weight).detach().clone()
        self.shift = (self.gate.bias + self.gate.weight @ self.{norm}.bias).detach().clone()

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
        return (centred * scale) @ {weight}.t() + {bias}
"""


@pytest.mark.parametrize("norm", ["norm", "layer"])
def test_weights_folded_in_the_constructor(court, norm):
    honest = PACKING.format(norm=norm, weight="self.packed", bias="self.shift")
    found = court.verdict(PACKED_REFERENCE, honest)
    assert found.verdict == "UNTIMED", found.reason
    assert not any("random" in warning for warning in found.warnings)


@pytest.mark.parametrize("norm", ["norm", "layer"])
@pytest.mark.parametrize(
    ("weight", "bias"),
    [("self.gate.weight", "self.shift"), ("self.packed", "self.gate.bias")],
    ids=["no scale", "no shift"],
)
def test_packing_does_not_hide_what_is_left_out(court, norm, weight, bias):
    found = court.verdict(PACKED_REFERENCE, PACKING.format(norm=norm, weight=weight, bias=bias))
    assert found.verdict == "NUMERIC", found.reason


def test_a_mask_of_floats_stays_a_mask(court):
    reference = """
    class Model(nn.Module):
        def forward(self, x, keep):
            return x * keep + (1 - keep) * -5.0

    def get_inputs():
        return [torch.randn(8, 30), (torch.rand(8, 30) > 0.5).float()]

    def get_init_inputs():
        return []
    """
    candidate = """
    class ModelNew(nn.Module):
        def forward(self, x, keep):
            return torch.where(keep > 0, x, torch.full_like(x, -5.0))
    """
    found = court.verdict(reference, candidate)
    assert found.verdict == "UNTIMED", found.reason


ROUNDED = """
class Model(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
        return (x / scale).round().clamp(-127, 127).to(torch.int8), x > 0.25 * scale * 127

def get_inputs():
    return [torch.randn(60, 80)]

def get_init_inputs():
    return []
"""
QUANTISED = """
class ModelNew(nn.Module):
    def forward(self, x):
        top = x.abs().amax(-1, keepdim=True).clamp(min=1e-6)
        return ({value}).to(torch.int8), x * 4 > top
"""


def test_integers_computed_from_floats(court):
    honest = QUANTISED.format(value="(x * (127 / top)).round().clamp(-127, 127)")
    truncated = QUANTISED.format(value="(x * (127 / top)).clamp(-127, 127)")
    found = court.verdict(ROUNDED, honest)
    assert found.verdict == "UNTIMED", found.reason
    assert court.verdict(ROUNDED, truncated).verdict == "NUMERIC"


INDEX = """
class Model(nn.Module):
    def forward(self, x):
        return x.argmax(-1)

def get_inputs():
    return [torch.randint(0, 5, (30, 20)).float()]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("return x.shape[-1] - 1 - x.flip(-1).argmax(-1)", "UNTIMED"),
        ("return x.argmin(-1)", "NUMERIC"),
        ("return x.argmax(-1) + x.shape[-1]", "NUMERIC"),
        ("return x.argmax(-1).int()", "DTYPE"),
        ("return torch.zeros(x.shape[:-1], dtype=torch.int64)", "NUMERIC"),
    ],
    ids=["last of equals", "least", "outside", "32 bits", "always the first"],
)
def test_positions(court, body, verdict):
    source = f"class ModelNew(nn.Module):\n    def forward(self, x):\n        {body}\n"
    found = court.verdict(INDEX, source)
    assert found.verdict == verdict, found.reason

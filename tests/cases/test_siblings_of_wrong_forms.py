"""Results of another type, place or memory than the reference's."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(10))

    def forward(self, x):
        return x.abs() * self.scale

def get_inputs():
    return [torch.randn(12, 10)]

def get_init_inputs():
    return []
"""

CANDIDATE = """
{before}
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(10))
        {init}

    def forward(self, x):
        {body}
"""

RIGHT = "x.abs() * self.scale"


def candidate(body, init="pass", before=""):
    return CANDIDATE.format(body=body, init=init, before=before)


SUBCLASS = "class Tensor(torch.Tensor):\n    pass\n"

CHEATS = {
    "float64": ("DTYPE", candidate(f"return ({RIGHT}).double()")),
    "half": ("DTYPE", candidate(f"return ({RIGHT}).half()")),
    "a tuple": ("DTYPE", candidate(f"return ({RIGHT},)")),
    "a dictionary": ("DTYPE", candidate(f"return {{'out': {RIGHT}}}")),
    "nothing": ("DTYPE", candidate("return None")),
    "a number": ("DTYPE", candidate("return 1.0")),
    "an array": ("DTYPE", candidate(f"return ({RIGHT}).detach().numpy()")),
    "a parameter": ("DTYPE", candidate(f"return nn.Parameter({RIGHT})")),
    "a subclass called Tensor": (
        "DTYPE",
        candidate(f"return ({RIGHT}).as_subclass(Tensor)", before=SUBCLASS),
    ),
    "one row less": ("SHAPE", candidate(f"return ({RIGHT})[:-1]")),
    "one more dimension": ("SHAPE", candidate(f"return ({RIGHT})[None]")),
    "transposed strides": ("LAYOUT", candidate(f"return ({RIGHT}).t().contiguous().t()")),
    "another device": ("LAYOUT", candidate(f"return ({RIGHT}).to('meta')")),
    "memory of the input": (
        "ALIASED",
        candidate(f"y = {RIGHT}; x.untyped_storage()\n        return x.set_(x)"),
    ),
    "one buffer for all results": (
        "ALIASED",
        candidate(
            "if self.out is None or self.out.shape != x.shape:\n"
            "            self.out = torch.empty_like(x)\n"
            f"        self.out.copy_({RIGHT})\n"
            "        return self.out",
            init="self.out = None",
        ),
    ),
    "a buffer that grows": (
        "ALIASED",
        candidate(
            "if self.out is None or self.out.numel() < x.numel():\n"
            "            self.out = torch.empty(x.numel())\n"
            "        out = self.out[: x.numel()].view(x.shape)\n"
            f"        return out.copy_({RIGHT})",
            init="self.out = None",
        ),
    ),
    "its own weights changed": (
        "STATE_DRIFT",
        candidate(
            f"y = {RIGHT}\n        self.scale.add_(0.0).mul_(1.5).div_(1.4)\n        return y"
        ),
    ),
    "an exception": ("RUNTIME", candidate("raise KeyError('lost')")),
    "other arguments": (
        "RUNTIME",
        candidate(f"return {RIGHT}").replace("forward(self, x)", "forward(self, x, y)"),
    ),
}

HONEST = {
    "the same": candidate(f"return {RIGHT}"),
    "a view of its own memory": candidate(f"return ({RIGHT}).contiguous().view(-1).view(x.shape)"),
    "a workspace that is not the result": candidate(
        f"self.space.copy_(self.space + 1); return {RIGHT}", init="self.space = torch.zeros(64)"
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_rejected(court, name):
    verdict, source = CHEATS[name]
    found = court.verdict(REFERENCE, source)
    if name == "memory of the input":
        assert found.verdict in ("ALIASED", "NUMERIC"), found.reason
    elif name == "its own weights changed":
        assert found.verdict in ("STATE_DRIFT", "NUMERIC"), found.reason
    else:
        assert found.verdict == verdict, found.reason


@pytest.mark.parametrize("name", HONEST)
def test_accepted(court, name):
    found = court.verdict(REFERENCE, HONEST[name])
    assert found.verdict == "UNTIMED", found.reason


COPYING = """
class Model(nn.Module):
    def forward(self, x):
        return x.reshape(-1, 2).clone().reshape(x.shape)

def get_inputs():
    return [torch.randn(12, 10)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("body", ["x", "x.view(x.shape)", "x[:]", "x.view(-1).view(x.shape)"])
def test_views_of_the_input(court, body):
    source = f"class ModelNew(nn.Module):\n    def forward(self, x):\n        return {body}\n"
    assert court.verdict(COPYING, source).verdict in ("ALIASED", "RUNTIME")


WEIGHTS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4))

    def forward(self, x):
        return self.weight * 1.0 + x.sum() * 0

def get_inputs():
    return [torch.randn(3)]

def get_init_inputs():
    return []
"""


def test_the_weights_themselves(court):
    source = """
    class ModelNew(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 4))

        def forward(self, x):
            return self.weight.detach()
    """
    assert court.verdict(WEIGHTS, source).verdict == "ALIASED"

"""Wrong values that some inputs hide: most pass on the inputs that the file itself makes."""

import pytest


def module(body, inputs, head="", arguments="x"):
    """A reference class with that body of forward, and what get_inputs returns."""
    return f"""
{head}
class Model(nn.Module):
    def forward(self, {arguments}):
        {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def candidate(body, arguments="x", before=""):
    return f"""
{before}
class ModelNew(nn.Module):
    def forward(self, {arguments}):
        {body}
"""


POSITIVE = "torch.rand(12, 256)"
NORMAL = "torch.randn(12, 40)"
CENTRED = module("return x - x.mean(-1, keepdim=True)", NORMAL)
CROSS_ENTROPY = module(
    "return F.cross_entropy(x, t)",
    "torch.randn(64, 10), torch.randint(0, 10, (64,))",
    arguments="x, t",
)
BIASED = module(
    "return x * s + b", "torch.randn(8, 24), torch.ones(24), torch.zeros(24)", "", "x, s, b"
)
BATCHED = module("return torch.bmm(a, b)", "torch.randn(3, 8, 9), torch.randn(3, 9, 7)", "", "a, b")
RELU = module("return torch.relu(x)", POSITIVE)
ROW_MAX = module("return x.amax(-1)", POSITIVE)
SOFTMAX = module("return torch.softmax(x, -1)", NORMAL)
TANH = module("return torch.tanh(x)", NORMAL)
SOFTPLUS = module("return F.softplus(x)", NORMAL)
L2 = module("return F.normalize(x, dim=-1)", NORMAL)
INT_SUM = module("return x.sum(-1)", "torch.randint(2**29, 2**30, (6, 50), dtype=torch.int32)")
DOUBLE = module("return x / 3", "torch.randn(10, 20, dtype=torch.float64)")
BF16_SUM = module("return x.float().sum(-1).to(x.dtype)", "torch.rand(6, 2048).bfloat16()")
HALF_RMS = module(
    "return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).half()",
    "torch.randn(10, 48).half()",
)
MASKED = module(
    "return (x @ x.t()).masked_fill(torch.ones(9, 9, device=x.device).triu(1) > 0, float('-inf'))",
    "torch.randn(9, 16)",
)
TWO = module("return x.sum(-1), x.amax(-1)", NORMAL)
ROWS_AND_COLUMNS = module("return x + x.mean(-1, keepdim=True) - x.mean(0)", "torch.randn(16, 16)")

STEPPED = """
@triton.jit
def positive(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    {body}

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, cols = x.shape
        if rows and cols:
            positive[(rows,)](x, out, cols, BLOCK=64)
        return out
"""
LOOP = """for start in range(0, {end}, BLOCK):
        inside = start + at < n_cols
        x = tl.load(x_ptr + row * n_cols + start + at, mask=inside, other=0.0)
        tl.store(out_ptr + row * n_cols + start + at, tl.maximum(x, 0.0), mask=inside)"""

CHEATS = {
    "zeros for a centred row": (CENTRED, candidate("return torch.zeros_like(x)")),
    "the input for a centred row": (CENTRED, candidate("return x.clone()")),
    "log of the class count for cross entropy": (
        CROSS_ENTROPY,
        candidate("return x.new_tensor(2.302585)", "x, t"),
    ),
    "cross entropy that ignores its targets": (
        CROSS_ENTROPY,
        candidate("return (torch.logsumexp(x, 1) - x[:, 0]).mean()", "x, t"),
    ),
    "a scale of one left out": (BIASED, candidate("return x + b", "x, s, b")),
    "a bias of zero left out": (BIASED, candidate("return x * s", "x, s, b")),
    "the first of a batch for all": (
        BATCHED,
        candidate("return (a[:1] @ b[:1]).expand(a.shape[0], -1, -1).contiguous()", "a, b"),
    ),
    "nothing done for positive inputs": (RELU, candidate("return x.clone()")),
    "abs in place of relu": (RELU, candidate("return x.abs()")),
    "columns after the last full block left out": (
        RELU,
        STEPPED.format(body=LOOP.format(end="n_cols // BLOCK * BLOCK")),
    ),
    "zero as the least of a maximum": (ROW_MAX, candidate("return x.amax(-1).clamp(min=0)")),
    "softmax without the maximum": (
        SOFTMAX,
        candidate("e = torch.exp(x); return e / e.sum(-1, keepdim=True)"),
    ),
    "softmax over the other axis": (
        module("return torch.softmax(x, -1)", "torch.randn(16, 16)"),
        candidate("return torch.softmax(x, 0)"),
    ),
    "tanh by way of exp": (
        TANH,
        candidate("e = torch.exp(2 * x); return (e - 1) / (e + 1)"),
    ),
    "softplus without its linear part": (SOFTPLUS, candidate("return torch.log(1 + torch.exp(x))")),
    "no floor under a norm": (L2, candidate("return x / x.norm(dim=-1, keepdim=True)")),
    "a sum of integers in 32 bits": (
        INT_SUM,
        candidate("return x.cumsum(-1, dtype=torch.int32)[..., -1].contiguous().long()"),
    ),
    "float32 for float64": (DOUBLE, candidate("return (x.float() / 3).double()")),
    "bfloat16 sums": (
        BF16_SUM,
        candidate(
            "total = torch.zeros(x.shape[:-1], dtype=x.dtype)\n"
            "        for part in x.unbind(-1):\n"
            "            total = total + part\n"
            "        return total"
        ),
    ),
    "squares in half precision": (
        HALF_RMS,
        candidate(
            "m = (x * x).float().mean(-1, keepdim=True)\n"
            "        return (x.float() * torch.rsqrt(m + 1e-6)).half()"
        ),
    ),
    "a large number for minus infinity": (
        MASKED,
        candidate("return (x @ x.t()).masked_fill(torch.ones(9, 9).triu(1) > 0, -1e9)"),
    ),
    "two outputs swapped": (TWO, candidate("return x.amax(-1), x.sum(-1)")),
    "the second of two outputs wrong": (TWO, candidate("return x.sum(-1), x.amin(-1)")),
    "rows for columns of a square": (
        ROWS_AND_COLUMNS,
        candidate("return x + x.mean(0) - x.mean(-1, keepdim=True)"),
    ),
    "right for three calls": (
        RELU,
        candidate(
            "self.n = getattr(self, 'n', 0) + 1\n"
            "        return torch.relu(x) if self.n <= 3 else torch.zeros_like(x)"
        ),
    ),
    "wrong on the first call": (
        RELU,
        candidate(
            "first, self.ready = not getattr(self, 'ready', False), True\n"
            "        return torch.zeros_like(x) if first else torch.relu(x)"
        ),
    ),
}

HONEST = {
    "all columns in a loop": (RELU, STEPPED.format(body=LOOP.format(end="n_cols"))),
    "softmax with the maximum": (
        SOFTMAX,
        candidate(
            "e = torch.exp(x - x.amax(-1, keepdim=True)); return e / e.sum(-1, keepdim=True)"
        ),
    ),
    "softplus in two parts": (
        SOFTPLUS,
        candidate("return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))"),
    ),
    "a norm with its floor": (
        L2,
        candidate("return x / (x * x).sum(-1, keepdim=True).sqrt().clamp(min=1e-12)"),
    ),
    "bfloat16 summed in float32, in blocks": (
        BF16_SUM,
        candidate("return x.float().unfold(-1, 1, 1).sum((-1, -2)).to(x.dtype)"),
    ),
    "half precision squared in float32": (
        HALF_RMS,
        candidate(
            "w = x.float()\n"
            "        mean = (w * w).sum(-1, keepdim=True) / x.shape[-1]\n"
            "        return (w / torch.sqrt(mean + 1e-6)).half()"
        ),
    ),
    "minus infinity by torch.where": (
        MASKED,
        candidate(
            "keep = torch.ones(9, 9).tril() > 0\n"
            "        return torch.where(keep, x @ x.t(), torch.full((), float('-inf')))"
        ),
    ),
    "a batch one by one": (
        BATCHED,
        candidate("return torch.stack([p @ q for p, q in zip(a, b)]) if len(a) else a @ b", "a, b"),
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_rejected(court, name):
    found = court.verdict(*CHEATS[name])
    assert found.verdict in ("NUMERIC", "NONFINITE"), found.reason
    assert found.evidence["case"]


@pytest.mark.parametrize("name", HONEST)
def test_accepted(court, name):
    found = court.verdict(*HONEST[name])
    assert found.verdict == "UNTIMED", found.reason

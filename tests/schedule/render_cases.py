"""Small user files for the rendering tests: one per idea, together every operator's rule."""

POINTWISE = """
import torch
import torch.nn.functional as F
from torch import nn

class Model(nn.Module):
    def forward(self, x, y):
        return ({outputs},)

def get_inputs():
    return [{x}, {y}]
"""

_UNARY = """x.exp() | torch.exp2(x) | (x.abs() + 0.1).log() | (x.abs() + 0.1).log2()
x.abs().sqrt()
(x.abs() + 0.1).rsqrt() | x.sin() | x.cos() | torch.erf(x) | x.sigmoid() | x.tanh()
x.abs().log1p()
x.expm1() | x.floor() | x.ceil() | x.sign() | (x.abs() + 0.1).reciprocal() | x.square() | x**3
x**-2 | x.abs() ** 0.5 | -x | (x.abs() + 0.1).log10()"""
_ACTIVATIONS = """F.relu(x) | F.relu6(x * 4) | F.leaky_relu(x) | F.silu(x) | F.gelu(x)
F.gelu(x, approximate="tanh") | F.elu(x) | F.celu(x, 0.7) | F.selu(x) | F.softplus(x * 9)
F.softplus(x, beta=2) | F.mish(x) | F.logsigmoid(x) | F.hardsigmoid(x * 4) | F.hardswish(x * 4)
F.hardtanh(x, -0.5, 0.7) | F.threshold(x, 0.1, 0.2) | F.softshrink(x) | F.hardshrink(x)
F.tanhshrink(x) | F.softsign(x) | torch.logit(x.sigmoid(), eps=1e-3)"""
_BINARY = """x + y | x - y | x * y | x / (y.abs() + 1) | torch.add(x, y, alpha=2) | 3 - x
2 / (x.abs() + 1)
torch.sub(x, 2.5) | torch.rsub(x, y) | torch.maximum(x, y) | torch.minimum(x, y) | torch.max(x, y)
torch.where(x > y, x, 0.5) | torch.where(x > 0, 1.0, y) | x.masked_fill(y > 0, -1.5)
x.masked_fill(y > 0, float("-inf")) | x.clamp(-0.5, 0.5) | x.clamp(min=0.1) | x.clamp_max(0.3)
torch.clamp(x, y, y + 1) | torch.addcmul(x, x, y, value=0.5) | torch.addcdiv(x, x, y.abs() + 1)
torch.lerp(x, y, 0.3) | torch.lerp(x, y, x) | x == y | x != y | x < y | x <= 0.2 | x > 1 | x >= y
(x > 0) & (y > 0) | torch.logical_or(x > 0, y > 0) | torch.logical_xor(x > 0, y > 0) | ~(x > 0)
torch.logical_not(x) | torch.isnan(x) | (x > 0).float() | (x > 0) * y | torch.logaddexp(x, y)
x.half().float() | x.to(torch.float64) | x.type_as(y)"""
_INTEGERS = """x + y | x * 2 + 1 | x - y | x / 3 | x.float() * 0.5 | x & 7 | x | y | x ^ y | ~x
x > 2
torch.where(x > 2, x, y) | torch.relu(x) | x.clamp(1, 5) | x.abs() | x**2 | x.sign() | x == y
torch.exp(x * 0.1) | x * 0.5 | torch.maximum(x, y) | (x > 1) | (y > 1) | x.to(torch.int32)"""


def _outputs(text):
    return ", ".join(part.strip() for line in text.splitlines() for part in line.split(" | "))


def pointwise(text, x, y):
    return POINTWISE.format(outputs=_outputs(text), x=x, y=y)


def module(body, inputs, setup="pass"):
    """A module with this forward body over the inputs' names."""
    names = ", ".join(inputs)
    return f"""
import torch
import torch.nn.functional as F
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {setup}

    def forward(self, {names}):
        {body}

def get_inputs():
    return [{", ".join(inputs.values())}]
"""


def _rows(expression, *shape, dtype="torch.float32"):
    size = ", ".join(map(str, shape))
    return module(f"return {expression}", {"x": f"torch.randn({size}).to({dtype})"})


R = "torch.randn"
REDUCTIONS = """x.sum(-1) | x.sum(1, keepdim=True) | x.mean(-1) | x.amax(-1)
x.amin(1, keepdim=True)
x.max(-1)[0] | x.min(-1).values | x.var(-1) | x.var(-1, unbiased=False, keepdim=True) | x.std(-1)
torch.norm(x, dim=-1) | torch.norm(x, p=1, dim=-1)
torch.linalg.vector_norm(x, float("inf"), dim=-1)
torch.logsumexp(x, -1) | (x > 1).any(-1) | (x > -9).all(-1) | x.softmax(-1) | x.log_softmax(-1)
F.layer_norm(x, x.shape[-1:]) | F.rms_norm(x, x.shape[-1:]) | F.normalize(x) | F.softmin(x, -1)
F.cosine_similarity(x, x + 1)"""


def reductions(x):
    return module(f"return ({_outputs(REDUCTIONS)},)", {"x": x})


CASES = {
    "unary": pointwise(_UNARY, f"{R}(5, 67)", f"{R}(5, 67)"),
    "activations": pointwise(_ACTIVATIONS, f"2 * {R}(5, 67)", f"{R}(5, 67)"),
    "activations_small": pointwise(
        "x.tanh() | x.expm1() | x.log1p() | F.mish(x) | F.elu(x)",
        f"1e-3 * {R}(5, 67)",
        f"{R}(5, 67)",
    ),
    "binary": pointwise(_BINARY, f"{R}(5, 67)", f"{R}(5, 67)"),
    "half": pointwise(
        "x + y | F.gelu(x) | x * 2.5 | x > y | x.float() | x.exp()",
        f"{R}(5, 67).half()",
        f"{R}(5, 67).half()",
    ),
    "bfloat16": pointwise(
        "x + y | F.silu(x) * y | x.softmax(-1) | x.sum(-1) | F.rms_norm(x, (67,))",
        f"{R}(5, 67).bfloat16()",
        f"{R}(5, 67).bfloat16()",
    ),
    "integers": pointwise(
        _INTEGERS, "torch.randint(0, 9, (5, 67))", "torch.randint(0, 9, (5, 67))"
    ),
    "row_vector": pointwise("x + y | F.relu(x * y)", f"{R}(5, 67)", f"{R}(67)"),
    "column_vector": pointwise("x + y | F.relu(x * y)", f"{R}(5, 67)", f"{R}(5, 1)"),
    "channel": pointwise("x + y | F.relu(x * y)", f"{R}(3, 5, 7, 9)", f"{R}(5, 1, 1)"),
    "middle": pointwise("x + y", f"{R}(3, 5, 7, 9)", f"{R}(3, 1, 7, 1)"),
    "outer": pointwise("x + y", f"{R}(13, 1)", f"{R}(17)"),
    "scalar": pointwise("x + y | x * y", f"{R}(13, 5)", f"{R}(())"),
    "numbers": pointwise("x + y | x.exp()", f"{R}(())", f"{R}(())"),
    "permuted": pointwise(
        "F.relu(x.transpose(1, 2)) | x.permute(2, 0, 1) * 2 + 1", f"{R}(3, 5, 7)", f"{R}(3)"
    ),
    "transposed_operand": pointwise("x.t() * 2 + y", f"{R}(13, 5)", f"{R}(5, 13)"),
    "itself_transposed": pointwise("x + x.t()", f"{R}(13, 13)", f"{R}(5, 13)"),
    **{f"rows_{n}": reductions(f"{R}(7, {n})") for n in (1, 127, 128, 129)},
    "rows_many": reductions(f"{R}(70, 5)"),
    "rows_3d": _rows(
        "F.relu(x).softmax(-1), x.sum(-1), x.mean((1, 2)), x.amax((1, 2), keepdim=True)", 3, 5, 7
    ),
    "inner": _rows(
        "x.softmax(1), x.sum(1), x.mean(0), x.amax(1, keepdim=True), x.var(1), x.sum((0, 1))",
        3,
        5,
        70,
    ),
    "inner_wide": _rows("x.softmax(0), x.sum(0), F.normalize(x, dim=0)", 33, 130),
    "fused_softmax": _rows("(F.gelu(x) * 2).softmax(-1) + 1", 6, 45),
    "shifted": _rows("((x - x.mean(-1, keepdim=True)) ** 2).sum(-1)", 6, 45),
    "half_rows": _rows(
        "x.softmax(-1), F.layer_norm(x, (45,)), x.sum(-1), x.mean(-1)", 6, 45, dtype="torch.float16"
    ),
    "integer_rows": module(
        "return x.sum(-1), x.amax(-1), (x > 3).sum(-1), x.float().mean(-1)",
        {"x": "torch.randint(0, 9, (6, 45))"},
    ),
    "norms": module(
        "return self.ln(x + r), self.rms(x) * r, self.ln3(y), self.gn(z), self.inorm(z)",
        {"x": f"{R}(6, 48)", "r": f"{R}(6, 48)", "y": f"{R}(4, 3, 5, 6)", "z": f"{R}(2, 6, 4, 5)"},
        "self.ln = nn.LayerNorm(48); self.rms = nn.RMSNorm(48); self.ln3 = nn.LayerNorm((3, 5, 6));"
        "self.gn = nn.GroupNorm(3, 6); self.inorm = nn.InstanceNorm2d(6, affine=True)",
    ),
    "batch_norm": module(
        "return F.relu(self.bn(x))",
        {"x": f"{R}(2, 6, 4, 5)"},
        "self.bn = nn.BatchNorm2d(6).eval()",
    ),
    "prelu": module("return self.act(x)", {"x": f"{R}(2, 6, 4, 5)"}, "self.act = nn.PReLU(6)"),
    "large_offset": module(
        "return x.var(-1), F.layer_norm(x, (45,)), x.std(-1, keepdim=True), x.softmax(-1)",
        {"x": f"{R}(6, 45) + 1000"},
    ),
    "infinite": module(
        "x = x.masked_fill(m, float('-inf')); return x.softmax(-1), torch.logsumexp(x, -1), "
        "x.log_softmax(-1), x.amax(-1)",
        {"x": f"{R}(6, 70)", "m": "(torch.arange(70) < 40).repeat(6, 1)"},
    ),
    "two_results": _rows("x.exp(), x.exp().sum(-1)", 6, 45),
    "nested": module("return {'a': (x.relu(), [x.exp()]), 'b': x.sum(-1)}", {"x": f"{R}(6, 45)"}),
    "views": module(
        "return x.reshape(x.shape[0], -1).softmax(-1), x.flatten(1).relu().view(3, 5, 8), "
        "x.unsqueeze(1) * 2, x.chunk(2, -1)[0] + 1",
        {"x": f"{R}(3, 5, 8)"},
    ),
    "batch_norm_training": module(
        "return self.bn(x)", {"x": f"{R}(2, 6, 4, 5)"}, "self.bn = nn.BatchNorm2d(6)"
    ),
    **{
        f"cross_entropy_{name}": module(
            f"return F.cross_entropy(x, t{options})",
            {"x": f"{R}(9, 37)", "t": "torch.tensor([0, 5, 36, 7, 3, 3, 8, 1, 20])"},
        )
        for name, options in {
            "mean": "",
            "none": ", reduction='none'",
            "sum": ", reduction='sum', ignore_index=3",
            "ignored": ", ignore_index=3",
            "half": "",
        }.items()
    },
    "cross_entropy_2d": module(
        "return F.cross_entropy(x, t, reduction='none')",
        {"x": f"{R}(4, 37, 5)", "t": "torch.randint(0, 37, (4, 5))"},
    ),
    "losses": module(
        "return F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y), "
        "F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction='batchmean'), x.mean(), x.sum(), "
        "x.amax(), torch.norm(x), F.mse_loss(x, y, reduction='none'), "
        "torch.mean(torch.clamp(1 - x * y, min=0))",
        {"x": f"{R}(9, 37)", "y": f"{R}(9, 37)"},
    ),
    "linear": module(
        "return F.relu(self.a(x)), self.b(x), x @ self.w",
        {"x": f"{R}(33, 40)"},
        "self.a = nn.Linear(40, 50); self.b = nn.Linear(40, 20, bias=False);"
        "self.w = nn.Parameter(torch.randn(40, 24))",
    ),
    "linear_3d": module(
        "return torch.sigmoid(self.a(x)) * r, torch.addmm(s, x[0], self.w, alpha=2)",
        {"x": f"{R}(3, 17, 40)", "r": f"{R}(3, 17, 50)", "s": f"{R}(24)"},
        "self.a = nn.Linear(40, 50); self.w = nn.Parameter(torch.randn(40, 24))",
    ),
    "linear_permuted": module(
        "return F.relu(self.a(x)).transpose(1, 2) * 2, F.relu(self.a(x.transpose(0, 1))), "
        "x[0] @ x[1].t()",
        {"x": f"{R}(3, 17, 40)"},
        "self.a = nn.Linear(40, 50)",
    ),
    "batched": module(
        "return torch.bmm(x, y) + s, torch.matmul(q, k.transpose(-2, -1)) * 0.5, "
        "x @ x.transpose(1, 2)",
        {
            "x": f"{R}(3, 17, 40)",
            "y": f"{R}(3, 40, 21)",
            "s": f"{R}(17, 1)",
            "q": f"{R}(2, 3, 17, 24)",
            "k": f"{R}(2, 3, 19, 24)",
        },
    ),
    "constants": module(
        "return x * torch.tensor([1.0, 2.0, 4.0]) + torch.ones(5, 3), torch.arange(3) + x",
        {"x": f"{R}(5, 3)"},
    ),
    "linear_half": module(
        "return F.gelu(self.a(x))",
        {"x": f"{R}(33, 40).half()"},
        "self.a = nn.Linear(40, 48).half()",
    ),
    "function": """
import torch

def scaled(x, factor=2.0):
    return torch.softmax(x * factor, -1)

def inputs():
    return [torch.randn(5, 9)]
""",
}

"""User files for rewritings: source, the steps to take, and what the program then calls or not."""

_HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def _indented(text):
    return "\n".join(f"        {line}" for line in text.strip("\n").split("\n"))


def case(setup, forward, inputs):
    """A module in eval mode."""
    return f"""{_HEAD}
TASK = {{"mode": "eval"}}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{_indented(setup)}

    def forward(self, x):
{_indented(forward)}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


_IMAGE = "torch.randn(4, 3, 8, 8)"
_ROWS = "torch.randn(5, 12)"

# name: (source, phrases of the steps, words that the program has, words that it has not)
CASES = {
    "norm_into_convolution": (
        case(
            "self.conv = nn.Conv2d(3, 8, 3)\nself.norm = nn.BatchNorm2d(8)",
            "return torch.relu(self.norm(self.conv(x)))",
            _IMAGE,
        ),
        ["simplify r1"],
        ["conv_weight_scaled"],
        ["batch_norm"],
    ),
    "norm_into_transposed_convolution": (
        case(
            "self.up = nn.ConvTranspose2d(3, 8, 3, stride=2)\n"
            "self.norm = nn.BatchNorm2d(8, affine=False)",
            "return torch.tanh(self.norm(self.up(x)) * 0.5 + 1)",
            _IMAGE,
        ),
        ["simplify r1"],
        ["up_weight_scaled"],
        ["batch_norm", "0.5 +"],
    ),
    "scales_into_linear": (
        case(
            "self.a = nn.Linear(12, 7)\nself.gain = nn.Parameter(torch.randn(7))",
            "return torch.relu(2 - self.gain * self.a(x) / 3)",
            _ROWS,
        ),
        ["simplify r1"],
        ["a_weight_scaled"],
        [" / 3"],
    ),
    "half_norm_into_linear": (
        case(
            "self.a = nn.Linear(12, 7).bfloat16()\nself.n = nn.BatchNorm1d(7).bfloat16()",
            "return torch.relu(self.n(self.a(x)))",
            f"{_ROWS}.bfloat16()",
        ),
        ["simplify r1"],
        ["to(torch.float32)"],
        ["batch_norm"],
    ),
    "sum_and_rows_of_one": (
        case(
            "self.a = nn.Linear(12, 7)",
            """total = self.a(x).sum(1, keepdim=True)
most = torch.max(total, 1, keepdim=True)[0]
return torch.logsumexp(most.mean(1, True), 1, True)""",
            _ROWS,
        ),
        ["simplify all"],
        ["a_weight_sum"],
        ["torch.max", "logsumexp", ".mean("],
    ),
    "mean_without_its_dimension": (
        case(
            "self.a = nn.Linear(12, 7, bias=False)",
            "return torch.relu(self.a(x).mean(-1))",
            "torch.randn(5, 6, 12)",
        ),
        ["simplify r1"],
        ["a_weight_mean", "squeeze(-1)"],
        [],
    ),
    "two_layers_as_one": (
        case(
            "self.a = nn.Linear(30, 20)\nself.b = nn.Linear(20, 3)",
            "return torch.relu(self.b(self.a(x)))",
            "torch.randn(64, 30)",
        ),
        ["simplify r1"],
        ["b_weight_joined"],
        [],
    ),
    "bias_before_instance_norm": (
        case(
            "self.c = nn.Conv2d(3, 6, 3)\nself.n = nn.InstanceNorm2d(6)",
            "return self.n(self.c(x))",
            _IMAGE,
        ),
        ["simplify r1"],
        [],
        ["c.bias"],
    ),
    "bias_into_activation": (
        case(
            "self.c = nn.Conv2d(3, 6, 3)",
            "y = self.c(x)\nreturn y * torch.sigmoid(y)",
            _IMAGE,
        ),
        ["lower r2", "simplify r1"],
        ["(self.c.bias, conv2d_2)"],
        ["_prepared"],
    ),
    "bias_into_pool": (
        case(
            "self.c = nn.Conv1d(3, 6, 3, padding='same')",
            "return F.max_pool1d(self.c(x), 2)",
            "torch.randn(4, 3, 16)",
        ),
        ["lower r2", "simplify r1"],
        ["self.c.weight, None"],
        [],
    ),
    "idioms": (
        case(
            "pass",
            """e = torch.exp(x - x.amax(1, keepdim=True))
p = e / e.sum(1, keepdim=True)
q = torch.log(torch.softmax(x * 1 * 2 * 3, dim=-1))
return q, p, x * torch.sigmoid(x), x / (1 + torch.exp(-x))""",
            _ROWS,
        ),
        ["simplify all"],
        ["log_softmax", "x * 6.0", "softmax(x, 1)", "silu(x)"],
        ["exp", "sigmoid"],
    ),
    "constant_before_softmax": (
        case(
            "self.b = nn.Parameter(torch.randn(5, 1))",
            "return torch.softmax(x * 2 + self.b, -1)",
            _ROWS,
        ),
        ["simplify r2"],
        [],
        ["self.b"],
    ),
    "channels_last": (
        case(
            "self.a = nn.Conv2d(3, 8, 3, padding=1)\nself.n = nn.BatchNorm2d(8)\n"
            "self.b = nn.Conv2d(8, 8, 3, padding=1)\nself.c = nn.Conv2d(8, 5, 1, bias=False)",
            """y = F.max_pool2d(torch.relu(self.n(self.a(x))), 2)
z = y + torch.relu(self.b(y))
return self.c(z), z.mean((2, 3))""",
            _IMAGE,
        ),
        ["layout r1"],
        ["x.contiguous(memory_format=torch.channels_last)", "b_weight_nhwc"],
        [],
    ),
    "channels_last_and_kernels": (
        case(
            "self.a = nn.Conv2d(3, 8, 3, padding=1)\nself.n = nn.BatchNorm2d(8)\n"
            "self.b = nn.ConvTranspose2d(8, 8, 3, padding=1)\nself.c = nn.Conv2d(8, 5, 1)",
            """y = torch.relu(self.n(self.a(x)))
return torch.tanh(self.c(torch.relu(self.b(y))))""",
            _IMAGE,
        ),
        ["layout r1", "lower r3", "lower r5", "lower r7", "simplify all"],
        ["a_weight_nhwc_scaled"],
        ["batch_norm"],
    ),
}

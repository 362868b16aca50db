"""Small user files of one matrix product and what reduces or normalises its rows, by case."""

from tests.schedule.render_cases import R, module

_X = {"x": f"{R}(70, 40)"}
_LINEAR = "self.linear = nn.Linear(40, 45)"


def after_linear(expression, inputs=_X, setup=_LINEAR):
    """A module that computes this expression from y, a linear layer of x."""
    return module(f"y = self.linear(x); return {expression}", inputs, setup)


CASES = {
    "relu_sum": after_linear("F.relu(y).sum(-1)"),
    "negative_max": after_linear("(y - 99).amax(-1)"),
    "mean_kept": after_linear("F.gelu(y).mean(-1, keepdim=True)"),
    "logsumexp": after_linear("torch.logsumexp(5 * torch.tanh(y / 5), -1)"),
    "argmax": after_linear("(y - 99).argmax(-1)"),
    "softmax": after_linear("(y * 0.5).softmax(-1)"),
    "log_softmax_sum": after_linear("y.log_softmax(-1).sum(-1)"),
    "layer_norm": after_linear(
        "F.relu(self.norm(y) - 0.2)", setup=f"{_LINEAR}; self.norm = nn.LayerNorm(45)"
    ),
    "rms_norm": after_linear(
        "self.norm(y + z)",
        {**_X, "z": f"{R}(70, 45)"},
        f"{_LINEAR}; self.norm = nn.RMSNorm(45)",
    ),
    "three_dimensions": after_linear("y.softmax(-1)", {"x": f"{R}(3, 25, 40)"}),
    "batched": module(
        "return torch.bmm(x, y).softmax(-1)", {"x": f"{R}(3, 20, 24)", "y": f"{R}(3, 24, 33)"}
    ),
    "wide_half": module(
        "return torch.mm(x, y).softmax(-1)",
        {"x": f"{R}(40, 40).half()", "y": f"{R}(40, 130).half()"},
    ),
    "infinite": module(
        "return torch.mm(x, y).relu().sum(-1)",
        {"x": "torch.full((20, 24), float('inf'))", "y": "torch.full((24, 33), 2.0)"},
    ),
}

_WIDE = "self.linear = nn.Linear(40, 600)"
_WIDER = {"x": f"{R}(20, 40)"}
# Rows that are too long for one program: tile by tile.
SWEPT = {
    "sum": after_linear("F.relu(y).sum(-1) + x[:, 0]", _WIDER, _WIDE),
    "max": after_linear("(y - 99).amax(-1, keepdim=True)", _WIDER, _WIDE),
    "mean": after_linear("torch.sigmoid(F.gelu(y).mean(-1))", _WIDER, _WIDE),
    "logsumexp": after_linear("torch.logsumexp(5 * torch.tanh(y / 5), -1)", _WIDER, _WIDE),
    "argmin": after_linear("(y + 99).argmin(-1)", _WIDER, _WIDE),
    "several": after_linear(
        "(y.amax(-1), (y + z).abs().sum(-1))", {**_WIDER, "z": f"{R}(20, 600)"}, _WIDE
    ),
    "batched": module(
        "return torch.logsumexp(torch.bmm(x, y), -1)",
        {"x": f"{R}(3, 20, 24)", "y": f"{R}(3, 24, 530)"},
    ),
}

_EPILOGUES = {
    "sum": "F.relu(y).sum(-1)",
    "softmax": "F.gelu(y).softmax(-1)",
    "norm": "F.gelu(self.norm(y + z))",
}


def _declared(expression, columns, dtype):
    """A layer of 512 inputs on 16384 rows."""
    layers = f"self.linear = nn.Linear(512, {columns}); self.norm = nn.LayerNorm({columns})"
    sizes = {"x": 512, "z": columns}
    inputs = {name: f"{R}(16384, {size}).to(torch.{dtype})" for name, size in sizes.items()}
    return after_linear(expression, inputs, f"{layers}; self.to(torch.{dtype})")


# As large as in use: what the tiles are chosen and compiled for.
DECLARED = {
    f"{name}_{columns}_{dtype}": _declared(expression, columns, dtype)
    for name, expression in _EPILOGUES.items()
    for columns, dtype in ((64, "bfloat16"), (256, "float32"), (512, "bfloat16"), (64, "float32"))
}
DECLARED |= {
    f"{name}_4096_{dtype}": _declared(expression, 4096, dtype)
    for name, expression in (
        ("sum", "F.gelu(y).sum(-1)"),
        ("logsumexp", "torch.logsumexp(15 * torch.tanh(y / 15), -1)"),
        ("argmax", "(y + z).argmax(-1)"),
    )
    for dtype in ("bfloat16", "float32")
}

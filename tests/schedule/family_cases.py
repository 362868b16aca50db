"""Small user files of the operator families, by family: each is lowered whole and compared."""

from tests.schedule.render_cases import R, module

X = {"x": f"{R}(6, 45)"}
IMAGE = {"x": f"{R}(2, 6, 9, 11)"}


def returns(text, inputs, setup="pass"):
    """A module that returns these expressions, one a line."""
    expressions = [line.strip() for line in text.strip().splitlines()]
    return module(f"return ({', '.join(expressions)},)", inputs, setup)


INDEXING = {
    "slices": returns(
        """x[:, 3:17] * 2
        x[1:, ::2].exp()
        x[:, -5:] + 1
        x[2] * 3
        x[:, 7] + x[:, 8]
        x.chunk(2, -1)[0] * x.chunk(2, -1)[1].sigmoid()
        x.narrow(1, 4, 9).relu()
        x[:, 1:] - x[:, :-1]""",
        {"x": f"{R}(6, 44)"},
    ),
    "mirrors": returns(
        """x.flip(1)
        x.flip((0, 1)) + 1
        torch.roll(x, 3, 1)
        torch.roll(x, (-2, 5), (0, 1)) * 2""",
        X,
    ),
    "joins": returns(
        """torch.cat((x, y), 1)
        torch.cat((x.relu(), x * 2, x), 0)
        torch.stack((x, x + 1), 1)
        torch.cat((x[:, :1], y), -1) * 2
        torch.cat((-y[:, 9:], y[:, :9]), -1) * 2""",
        {"x": f"{R}(6, 45)", "y": f"{R}(6, 18)"},
    ),
    "padding": returns(
        """F.pad(x, (1, 2))
        F.pad(x, (1, 2, 3, 0), value=0.5)
        F.pad(x, (-1, -2))
        F.pad(x[0], (2, 3), mode='reflect')
        F.pad(x, (2, 3, 1, 1), mode='replicate')
        F.pad(x[0], (2, 3), mode='circular')""",
        IMAGE,
    ),
    "look_ups": returns(
        """F.embedding(i, w)
        w.index_select(0, i[0])
        w[i]
        torch.gather(x, 1, j)
        F.one_hot(i, 12).sum(-1)
        F.one_hot(i, 12)
        F.embedding(i, w).sum(1)""",
        {
            "x": f"{R}(6, 45)",
            "w": f"{R}(12, 20)",
            "i": "torch.randint(0, 12, (6, 5))",
            "j": "torch.randint(0, 45, (6, 7))",
        },
    ),
    "triangles": returns(
        """torch.tril(x)
        torch.triu(x, 1) * 2
        torch.tril(x, -3)
        torch.diag(x[0])""",
        {"x": f"{R}(13, 17)"},
    ),
    "repeats": returns(
        """F.interpolate(x, scale_factor=2, mode='nearest')
        F.interpolate(x, scale_factor=(3, 1), mode='nearest') + 1
        x.repeat(1, 2, 1, 1)
        x.repeat_interleave(3, dim=1)
        F.glu(x, 1)""",
        IMAGE,
    ),
    "constants": returns(
        """torch.where(x > 0, x, torch.zeros_like(x))
        x * torch.full_like(x, 0.5) + torch.ones_like(x)
        (torch.ones_like(x) + x).sum(-1)
        torch.ones_like(x).sum(-1) + x[:, 0]""",
        X,
    ),
}

POOLS = {
    "max_pool": returns(
        """F.max_pool2d(x, 2)
        F.max_pool2d(x, 3, 2, 1)
        F.max_pool2d(x, (2, 3), stride=1, dilation=2)
        F.max_pool1d(x[0], 3, 2, 1)
        F.max_pool2d(x.half(), 3, 2, 1)""",
        IMAGE,
    ),
    "avg_pool": returns(
        """F.avg_pool2d(x, 2)
        F.avg_pool2d(x, 3, 2, 1)
        F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
        F.avg_pool1d(x[0], 3, 2, 1)
        F.adaptive_avg_pool2d(x, 1)
        F.adaptive_max_pool2d(x, 1)""",
        IMAGE,
    ),
    "volume_pool": returns(
        """F.avg_pool3d(x, 2)
        F.max_pool3d(x, 3, 2, 1)
        F.adaptive_avg_pool3d(x, (1, 1, 1))""",
        {"x": f"{R}(2, 3, 5, 6, 7)"},
    ),
}

SCANS = {
    "scans": returns(
        """x.cumsum(1)
        (x * 0.1 + 1).cumprod(-1)
        x.flip(1).cumsum(1).flip(1)
        x.cumsum(-1) - x
        (x * (x > 0)).cumsum(-1)
        x.cumsum(0)
        x.half().cumsum(-1)""",
        X,
    ),
    "scans_inner": returns(
        """x.cumsum(1) * 2
        x.flip(1).cumsum(1).flip(1)
        i.cumsum(2)
        i.cumsum(0)""",
        {"x": f"{R}(3, 37, 18)", "i": "torch.randint(0, 9, (3, 5, 40))"},
    ),
}

REDUCTIONS = {
    "positions": returns(
        """x.argmax(-1)
        x.argmin(1, keepdim=True)
        x.max(-1)
        x.min(-1)
        (x * 2).argmax(0)
        (x > 0).float().argmax(-1)
        i.argmax(-1)""",
        {"x": f"{R}(6, 45)", "i": "torch.randint(0, 3, (6, 45))"},
    ),
    "products": returns(
        """(x * 0.1 + 1).prod(-1)
        (x * 0.1 + 1).prod(0, keepdim=True)
        (x > -9).all(-1)
        (x > 2).any(0)""",
        X,
    ),
    "apart": returns(
        """x.mean((0, 2, 3))
        (x * x).sum((0, 2, 3), keepdim=True) + 1
        x.amax((0, 2))
        x.sum((1, 3))
        x.var((0, 2, 3))""",
        IMAGE,
    ),
    "norms": returns(
        """torch.norm(x, p=3, dim=-1)
        torch.norm(x, p=4, dim=-1)
        torch.norm(x, p=0, dim=-1)
        torch.norm(x, p=-float('inf'), dim=-1)
        torch.var_mean(x, -1)
        torch.std_mean(x, -1)
        x.abs() ** 1.5""",
        X,
    ),
    "one_column": returns(
        "self.a(x)\nx @ self.w\nself.a(x).sigmoid().squeeze(-1)\ntorch.dot(x[0], x[1])",
        X,
        "self.a = nn.Linear(45, 1); self.w = nn.Parameter(torch.randn(45))",
    ),
    "rounding": returns("(x * 4).round()\n(x * 4).trunc()\ntorch.isfinite(x)\ntorch.isinf(x)", X),
}

NORMS = {
    "batch_norm_training": returns(
        "F.relu(self.bn(x))", IMAGE, "self.bn = nn.BatchNorm2d(6, momentum=0.3)"
    ),
    "batch_norm_vector": returns("self.bn(x)", X, "self.bn = nn.BatchNorm1d(45)"),
    "group_norm_vector": returns(
        "self.gn(x).clamp(-1, 1)", {"x": f"{R}(6, 48)"}, "self.gn = nn.GroupNorm(4, 48)"
    ),
}

LOSSES = {
    "class_losses": returns(
        """F.cross_entropy(x, t, label_smoothing=0.1)
        F.cross_entropy(x, t, w)
        F.cross_entropy(x, p)
        F.nll_loss(x.log_softmax(-1), t)
        F.nll_loss(x, t, w, ignore_index=3)""",
        {
            "x": f"{R}(9, 37)",
            "t": "torch.tensor([0, 5, 36, 7, 3, 3, 8, 1, 20])",
            "w": "torch.rand(37) + 0.5",
            "p": f"{R}(9, 37).softmax(-1)",
        },
    ),
    "pair_losses": returns(
        """F.binary_cross_entropy(x.sigmoid(), p)
        F.binary_cross_entropy_with_logits(x, p)
        F.soft_margin_loss(x, s)
        F.hinge_embedding_loss(x, s)
        F.margin_ranking_loss(x, y, s, margin=0.3)
        F.triplet_margin_loss(x, y, s)
        F.pairwise_distance(x, y)
        F.cosine_similarity(x, y).mean()
        F.huber_loss(x, y, delta=0.4)
        F.smooth_l1_loss(x, y, beta=0.3)""",
        {
            "x": f"{R}(9, 37)",
            "y": f"{R}(9, 37)",
            "p": "torch.rand(9, 37)",
            "s": "torch.randint(0, 2, (9, 37)) * 2.0 - 1",
        },
    ),
}

# All regions of a case joined in one kernel.
FUSED = {
    "norm_pool": returns(
        "F.max_pool2d(F.relu(self.bn(x)), 3, 2, 1)",
        IMAGE,
        "self.bn = nn.BatchNorm2d(6).eval()",
    ),
    "rotary": returns(
        "x * c + torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), -1) * s",
        {"x": f"{R}(2, 3, 5, 16)", "c": f"{R}(5, 16)", "s": f"{R}(5, 16)"},
    ),
    "masked_returns": returns(
        "torch.where(m, x, torch.zeros_like(x)).flip(1).cumsum(1).flip(1)",
        {"x": f"{R}(6, 45)", "m": "torch.rand(6, 45) > 0.3"},
    ),
    "join_of_scales": returns(
        "torch.cat((F.silu(x), F.interpolate(y * 2, scale_factor=2, mode='nearest')), 1)",
        {"x": f"{R}(2, 3, 8, 10)", "y": f"{R}(2, 5, 4, 5)"},
    ),
    "diagonal": returns("torch.diag(v) @ x", {"v": f"{R}(13)", "x": f"{R}(13, 17)"}),
    "diagonal_right": returns("(x @ torch.diag(v)).relu()", {"v": f"{R}(17)", "x": f"{R}(13, 17)"}),
    "lower_triangle": returns("torch.tril(x) @ y", {"x": f"{R}(70, 80)", "y": f"{R}(80, 40)"}),
    "upper_triangle": returns(
        "(torch.triu(x) @ y).relu()", {"x": f"{R}(90, 70)", "y": f"{R}(70, 40)"}
    ),
    "shifted_scan": returns("F.pad(x, (1, 0))[:, :-1].cumsum(-1)", X),
}

SPLIT = {
    "few_rows": returns(
        """x.softmax(-1)
        torch.logsumexp(x, -1)
        F.layer_norm(x, (3000,))
        x.var(-1) + x.sum(-1)
        x.argmax(-1)
        (x * 1e-3 + 1).prod(-1)
        x.max(-1)
        F.normalize(x)""",
        {"x": f"{R}(2, 3000)"},
    ),
    "whole_tensor": returns(
        """x / torch.norm(x)
        (x - x.mean()) / x.std()
        x.flatten().softmax(0)
        x * x.amax()""",
        {"x": f"{R}(3, 1000)"},
    ),
    "few_columns": returns(
        """x.sum(0)
        x.mean(0, keepdim=True) - x
        x.softmax(0)
        x.var(0)
        x.argmax(0)""",
        {"x": f"{R}(900, 5)"},
    ),
    "channels": returns(
        """self.bn(x)
        x.mean((0, 2, 3))
        x.softmax(2)""",
        {"x": f"{R}(2, 3, 40, 12)"},
        "self.bn = nn.BatchNorm2d(3)",
    ),
}

CASES = {**INDEXING, **POOLS, **SCANS, **REDUCTIONS, **NORMS, **LOSSES, **SPLIT}

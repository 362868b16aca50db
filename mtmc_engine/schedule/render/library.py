"""Library calls as a person writes them: torch functions, methods and operators."""

from __future__ import annotations

import sys
from collections.abc import Callable

from mtmc_engine.core.graph import Arg, Node
from mtmc_engine.schedule.render.library_names import FUNCTIONAL, LOSSES, TORCH

# Python operators; only where the call has no keyword arguments.
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@", "mm": "@", "bmm": "@",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "__and__": "&", "__or__": "|", "__xor__": "^",
}  # fmt: skip

# Functions that take ATen's own positional arguments.
_FUNCTIONS = {
    "aten.linear.default": "torch.nn.functional.linear",
    "aten.relu.default": "torch.relu",
    "aten.gelu.default": "torch.nn.functional.gelu",
    "aten.silu.default": "torch.nn.functional.silu",
    "aten.mish.default": "torch.nn.functional.mish",
    "aten.softplus.default": "torch.nn.functional.softplus",
    "aten.hardtanh.default": "torch.nn.functional.hardtanh",
    "aten.leaky_relu.default": "torch.nn.functional.leaky_relu",
    "aten.layer_norm.default": "torch.nn.functional.layer_norm",
    "aten.rms_norm.default": "torch.nn.functional.rms_norm",
    "aten.group_norm.default": "torch.nn.functional.group_norm",
    "aten.glu.default": "torch.nn.functional.glu",
    "aten.conv1d.default": "torch.nn.functional.conv1d",
    "aten.conv2d.default": "torch.nn.functional.conv2d",
    "aten.conv3d.default": "torch.nn.functional.conv3d",
    "aten.scaled_dot_product_attention.default": "torch.nn.functional.scaled_dot_product_attention",
    "aten.embedding.default": "torch.embedding",
    "aten.cosine_similarity.default": "torch.cosine_similarity",
    "aten.cat.default": "torch.cat",
    "aten.stack.default": "torch.stack",
    "aten.where.self": "torch.where",
    "aten.where.ScalarOther": "torch.where",
    "aten.where.ScalarSelf": "torch.where",
    "aten.addmm.default": "torch.addmm",
    "aten.baddbmm.default": "torch.baddbmm",
    "aten.maximum.default": "torch.maximum",
    "aten.minimum.default": "torch.minimum",
    "aten.softmax.int": "torch.softmax",
    "aten.log_softmax.int": "torch.log_softmax",
    "aten.logsumexp.default": "torch.logsumexp",
    "aten.max.dim": "torch.max",
    "aten.min.dim": "torch.min",
    "aten.amax.default": "torch.amax",
    "aten.amin.default": "torch.amin",
    "aten.argmax.default": "torch.argmax",
    "aten.argmin.default": "torch.argmin",
    "aten.cumsum.default": "torch.cumsum",
    "aten.clamp.default": "torch.clamp",
    "aten.max_pool2d.default": "torch.max_pool2d",
    "aten.einsum.default": "torch.einsum",
    "aten.chunk.default": "torch.chunk",
    "aten.split.Tensor": "torch.split",
    "aten.linalg_norm.default": "torch.linalg.norm",
    "aten.linalg_vector_norm.default": "torch.linalg.vector_norm",
}  # fmt: skip

_METHODS = {
    "aten.view.default": "reshape",
    "aten._unsafe_view.default": "reshape",
    "aten.reshape.default": "reshape",
    "aten.permute.default": "permute",
    "aten.transpose.int": "transpose",
    "aten.t.default": "t",
    "aten.unsqueeze.default": "unsqueeze",
    "aten.squeeze.dim": "squeeze",
    "aten.squeeze.default": "squeeze",
    "aten.expand.default": "expand",
    "aten.flatten.using_ints": "flatten",
    "aten.sum.default": "sum",
    "aten.sum.dim_IntList": "sum",
    "aten.mean.default": "mean",
    "aten.mean.dim": "mean",
    "aten.masked_fill.Scalar": "masked_fill",
    "aten.contiguous.default": "contiguous",
    "aten.clone.default": "clone",
    "aten.type_as.default": "type_as",
    "aten.pow.Tensor_Scalar": "pow",
    "aten.unfold.default": "unfold",
}  # fmt: skip

_LOSSES = {0: "none", 1: "mean", 2: "sum"}

Render = Callable[[Arg], str]


def library_call(node: Node, render: Render) -> str:
    """The node as a Python expression. render: source text of one argument."""
    args = [render(arg) for arg in node.args]
    kwargs = [f"{name}={render(arg)}" for name, arg in node.kwargs.items()]
    word = node.op.split(".")[1]
    if node.op == "aten.cross_entropy_loss.default":
        return _cross_entropy(node, args)
    if len(args) == 2 and not kwargs and (word in _INFIX or word == "rsub"):
        left, right = args if word != "rsub" else args[::-1]
        return f"{_operand(left)} {_INFIX.get(word, '-')} {_operand(right)}"
    if node.op in _INDEXING and args:
        return _INDEXING[node.op](node, args)
    if node.op == "aten._to_copy.default" and set(node.kwargs) == {"dtype"}:
        return f"{_operand(args[0])}.to({render(node.kwargs['dtype'])})"
    if node.op in _METHODS:
        return f"{_operand(args[0])}.{_METHODS[node.op]}({', '.join(args[1:] + kwargs)})"
    return _function_call(node.op, word, args, kwargs)


def _function_call(op: str, word: str, args: list[str], kwargs: list[str]) -> str:
    if word in ("layer_norm", "group_norm"):
        args = args[:5]  # ATen's last argument is a cuDNN switch
    known = f"torch.{word}" if word in TORCH else f"torch.ops.{op}"
    if word in FUNCTIONAL or (word in LOSSES and not kwargs and len(args) <= _operands_of(word)):
        known = f"torch.nn.functional.{word}"
    function = _FUNCTIONS.get(op, known)
    return f"{function}({', '.join(args + kwargs)})"


def _operands_of(loss: str) -> int:
    """How many tensors a loss compares."""
    threes = ("cosine_embedding_loss", "margin_ranking_loss", "triplet_margin_loss")
    return 3 if loss in threes else 2


def _slice(node: Node, args: list[str]) -> str:
    """x[:, 3:17:2] for a slice of one dimension."""
    given = [*args[1:], *("0", "None", "None", "1")[len(args) - 1 :]]
    dim = node.args[1] if len(node.args) > 1 else 0
    start, end, step = given[1:]
    dim = dim + len(node.out[0].shape) if dim < 0 else dim
    start = "" if start in ("None", "0") else start
    end = "" if end in ("None", str(sys.maxsize)) else end
    by = "" if step == "1" else f":{step}"
    return f"{_operand(args[0])}[{':, ' * dim}{start}:{end}{by}]"


def _index(node: Node, args: list[str]) -> str:
    """x[rows, :, cols] for indexing by tensors."""
    positions = args[1].removeprefix("[").removesuffix("]")
    listed = ", ".join(":" if one == "None" else one for one in positions.split(", "))
    return f"{_operand(args[0])}[{listed}]"


_INDEXING: dict[str, Callable[[Node, list[str]], str]] = {
    "aten.slice.Tensor": _slice,
    "aten.index.Tensor": _index,
}


def batch_norm_call(node: Node, render: Render, mean: str, variance: str) -> str:
    """Batch norm in training as it is called, on copies of the running statistics by name."""
    x, weight, bias = (render(arg) for arg in node.args[:3])
    rest = ", ".join(render(arg) for arg in node.args[5:8])
    operands = f"{x}, {mean}, {variance}, {weight}, {bias}, {rest}"
    return f"torch.nn.functional.batch_norm({operands})"


def _operand(text: str) -> str:
    """An argument that can be the operand of an infix operator or have a method called."""
    return f"({text})" if " " in text and not text.endswith(")") else text


def _cross_entropy(node: Node, args: list[str]) -> str:
    names = ("weight", "reduction", "ignore_index", "label_smoothing")
    named = dict(zip(names, node.args[2:], strict=False))
    extra = [
        f"{name}={args[at]}"
        for at, name in enumerate(names, start=2)
        if name in named and name != "reduction" and named[name] is not None
    ]
    if named.get("reduction", 1) != 1:
        extra.append(f"reduction={_LOSSES[named['reduction']]!r}")
    return f"torch.nn.functional.cross_entropy({', '.join([*args[:2], *extra])})"


_SYM_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "truediv": "/", "pow": "**",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip


def size_expression(node: Node, render: Render) -> str:
    """A "sym" node as a Python expression over sizes."""
    kind, *rest = node.args
    kind = kind.rstrip("_")
    args = [render(arg) for arg in rest]
    if kind == "size":
        return f"{args[0]}.shape[{args[1]}]"
    if kind == "numel":
        return f"{args[0]}.numel()"
    if kind in _SYM_INFIX:
        return f"({args[0]} {_SYM_INFIX[kind]} {args[1]})"
    if kind in ("max", "min", "float", "int"):
        return f"{kind}({', '.join(args)})"
    if kind == "neg":
        return f"(-{args[0]})"
    return f"torch.sym_{kind}({', '.join(args)})"

"""Library calls as a person writes them: torch functions, methods and operators."""

from __future__ import annotations

from collections.abc import Callable

from mtmc_engine.core.graph import Arg, Node

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
}  # fmt: skip

_SAME_NAME = frozenset(
    [
        "abs",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "sigmoid",
        "tanh",
        "sin",
        "cos",
        "erf",
        "neg",
        "reciprocal",
        "square",
        "sign",
        "floor",
        "ceil",
        "log1p",
        "expm1",
        "exp2",
        "log2",
        "isnan",
        "logical_not",
    ]
)
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
    if node.op in _METHODS:
        return f"{_operand(args[0])}.{_METHODS[node.op]}({', '.join(args[1:] + kwargs)})"
    return _function_call(node.op, word, args, kwargs)


def _function_call(op: str, word: str, args: list[str], kwargs: list[str]) -> str:
    if word in ("layer_norm", "group_norm"):
        args = args[:5]  # ATen's last argument is a cuDNN switch
    function = _FUNCTIONS.get(op, f"torch.ops.{op}")
    if word in _SAME_NAME and op.endswith(".default"):
        function = f"torch.{word}"
    return f"{function}({', '.join(args + kwargs)})"


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

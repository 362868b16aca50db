"""Names that a reader of the user's module would choose."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from mtmc_engine.core.graph import Graph, Node

RESERVED = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | {"tl", "torch", "triton", "self"}


def attribute(owner: str, path: str) -> str:
    """Source that reads an attribute path: "self.net[0].weight" for "net.0.weight"."""
    text = owner
    for part in path.split("."):
        if part.isdigit():
            text += f"[{part}]"
        elif part.isidentifier() and not keyword.iskeyword(part):
            text += f".{part}"
        else:
            text = f"getattr({text}, {part!r})"
    return text


class Names:
    """Gives each wanted name once; a name that is taken gets a number."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def fresh(self, wanted: str) -> str:
        """`wanted`, or `wanted_2`, `wanted_3`, … where it is taken."""
        name, count = identifier(wanted), 1
        base = name
        while name in self.taken or name in RESERVED:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name

    def tensor(self, wanted: str) -> str:
        """As `fresh`, so that what a kernel calls the tensor's pointer and strides is free too."""
        name, count = identifier(wanted), 1
        base = name
        while name in RESERVED or any(f"{name}{end}" in self.taken for end in ("", *_ENDINGS)):
            count += 1
            name = f"{base}_{count}"
        self.taken.update(f"{name}{end}" for end in ("", *_ENDINGS))
        return name


# What is added to a tensor's name in a kernel.
_ENDINGS = (
    *("_ptr", "_row_stride", "_k_stride", "_col_stride", "_batch_stride"),
    *("_right", "_right_k_stride", "_right_col_stride", "_right_batch_stride"),
)


def identifier(text: str) -> str:
    """The text as a Python identifier in lower case with underscores."""
    name = re.sub(r"\W+", "_", text).strip("_") or "value"
    return f"n{name}" if name[0].isdigit() else name


# Tensors that the module holds, or that are made of such.
_HELD = ("parameter", "buffer", "prepared")


def tensor_names(graph: Graph, loads: Iterable[str], names: Names) -> dict[str, str]:
    """Parameter names for the tensors that enter a group, by graph name.

    Inputs keep the user's names, parameters their attribute's; the only tensor that another
    operator makes is x.
    """
    loads = list(loads)
    inputs = {value.name: value for value in graph.inputs}
    made = [name for name in loads if name not in inputs]
    activations = [name for name in loads if name in inputs and inputs[name].kind == "input"]
    leaf_counts: dict[str, int] = {}
    for name in loads:
        if name in inputs and inputs[name].kind in _HELD:
            leaf = inputs[name].target.rsplit(".", 1)[-1]
            leaf_counts[leaf] = leaf_counts.get(leaf, 0) + 1
    chosen: dict[str, str] = {}
    for name in loads:
        if name not in inputs:
            alone = len(made) == 1 and not activations
            chosen[name] = names.tensor("x" if alone else _made_by(graph.node(name)))
            continue
        value = inputs[name]
        if value.kind == "input":
            chosen[name] = names.tensor(value.target)
        elif value.kind == "constant":
            chosen[name] = names.tensor("constant")
        else:
            path = value.target.split(".")
            short = path[-1] if leaf_counts[path[-1]] == 1 else "_".join(path[-2:])
            chosen[name] = names.tensor(short)
    return chosen


_RESULTS = {
    "sum": "total",
    "pow": "power",
    "abs": "magnitude",
    "max": "largest",
    "min": "smallest",
    "getitem": "part",
}


def _made_by(node: Node) -> str:
    """What a reader calls another operator's result: its module's name, or its operator's."""
    leaf = node.module.rsplit(".", 1)[-1]
    if leaf.isidentifier():
        return leaf
    word = node.op.split(".")[1] if "." in node.op else node.op
    return _RESULTS.get(word, node.name)

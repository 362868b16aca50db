"""How a kernel finds its elements: index and mask variables, offsets, sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.render.expressions import Text, horner
from mtmc_engine.schedule.templates.axes import Axis, Dim
from mtmc_engine.schedule.templates.functions import Level
from mtmc_engine.schedule.templates.space import Block, Run


@dataclass(frozen=True)
class Walk:
    """How a kernel walks through one block of the iteration space.

    index: expression of the flat position; size: name of the block's size.
    mask:  name of the variable that is true for positions inside, "" where all are.
    """

    block: Block
    index: Text
    size: str
    mask: str = ""


@dataclass
class Frame:
    """Index space of one kernel.

    prelude: (name, statement) in order; a statement is kept only if its name is used below.
    joined:  (mask names) -> name of the variable that combines them.
    folding: arguments that reductions take: "axis=0" or "axis=1, keep_dims=True".
    run_sizes: name of the size of every run.
    """

    walks: list[Walk]
    prelude: list[tuple[str, str]] = field(default_factory=list)
    joined: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    folding: str = "axis=0"
    run_sizes: dict[Run, str] = field(default_factory=dict)

    def offset(self, axes: Dim) -> Text:
        """Offset of the current elements in a dense tensor over `axes`, in storage order."""
        return horner(self.steps(axes))

    def mask(self, axes: Dim) -> str:
        """Name of the mask for a tensor over `axes`, "" where none is needed."""
        touched = [walk for walk in self.walks if set(walk.block.axes) & set(axes)]
        masks = tuple(walk.mask for walk in touched if walk.mask)
        if len(masks) <= 1:
            return masks[0] if masks else ""
        return self.joined[masks]

    def count(self, axes: Dim) -> Text:
        """Number of elements along `axes`."""
        steps = self.steps(axes)
        level = Level.ATOM if len(steps) == 1 else Level.PRODUCT
        return Text(" * ".join(size for _, size in steps), level)

    def steps(self, axes: Dim) -> list[tuple[Text, str]]:
        """(index, size) along a layout, whole blocks at once where it has them whole."""
        steps: list[tuple[Text, str]] = []
        at = 0
        while at < len(axes):
            walk, run = self._find(axes[at])
            if walk.block.axes == axes[at : at + len(walk.block.axes)]:
                steps.append((walk.index, walk.size))
                at += len(walk.block.axes)
            elif run.axes == axes[at : at + len(run.axes)]:
                steps.append((self._run_index(walk, run), self.run_sizes[run]))
                at += len(run.axes)
            else:
                raise Unsupported("a tensor has part of an axis")
        return steps

    def _find(self, axis: Axis) -> tuple[Walk, Run]:
        for walk in self.walks:
            for run in walk.block.runs:
                if axis in run.axes:
                    return walk, run
        raise Unsupported("a tensor has an axis that the kernel does not walk")

    def _run_index(self, walk: Walk, run: Run) -> Text:
        """Position along one run of a block that is walked through as a whole."""
        at = walk.block.runs.index(run)
        inner = [self.run_sizes[later] for later in walk.block.runs[at + 1 :]]
        index = walk.index
        if inner:
            divisor = inner[0] if len(inner) == 1 else f"({' * '.join(inner)})"
            index = Text(f"{index.at(Level.PRODUCT)} // {divisor}", Level.PRODUCT)
        if at > 0:
            index = Text(f"{index.at(Level.PRODUCT)} % {self.run_sizes[run]}", Level.PRODUCT)
        return index


def used_prelude(prelude: Sequence[tuple[str, str]], body: Sequence[str]) -> list[str]:
    """The statements of the prelude that the body, or a kept statement, needs."""
    kept: list[str] = []
    text = "\n".join(body)
    for name, statement in reversed(prelude):
        if mentions(text, name):
            kept.insert(0, statement)
            text = f"{statement}\n{text}"
    return kept


def mentions(text: str, name: str) -> bool:
    """Whether `name` occurs in the text as a whole word."""
    return re.search(rf"\b{re.escape(name)}\b", text) is not None

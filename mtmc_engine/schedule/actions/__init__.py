"""The action kinds: one module each, all of the shape `Kind`."""

from __future__ import annotations

from typing import Protocol

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.actions import (
    autotune,
    fuse,
    fuse_epilogue,
    layout,
    library,
    lower,
    one_pass,
    persist,
    pipeline,
    precision,
    primitive,
    reorder,
    retile,
    simplify,
    split,
    stop,
    vectorize,
)
from mtmc_engine.schedule.context import Change, Context


class Kind(Protocol):
    """One kind of step. NAME: the word of the design's table.

    What a language model is told about a kind lies in the coder's prompts.
    """

    NAME: str

    def legal(self, context: Context) -> list[Action]:
        """Every step of this kind that the state allows, with its reason."""
        ...

    def change(self, context: Context, action: Action) -> Change:
        """What a legal step does to the schedule."""
        ...


OPERATOR_LEVEL: tuple[Kind, ...] = (fuse_epilogue, fuse, lower, library, simplify, layout)
KERNEL_LEVEL: tuple[Kind, ...] = (
    one_pass,
    split,
    precision,
    primitive,
    reorder,
    retile,
    vectorize,
    pipeline,
    persist,
    autotune,
)
KINDS: dict[str, Kind] = {kind.NAME: kind for kind in (*OPERATOR_LEVEL, *KERNEL_LEVEL, stop)}

"""One semantic optimisation step, and how a planner scored it."""

from __future__ import annotations

from msgspec import Struct

from mtmc_engine.core.program import Param


class Action(Struct, frozen=True):
    """One step that a planner may choose.

    kind:   a word of the design's table, such as "fuse" or "retile".
    region: the region it acts on ("" for stop); `other` is the second one of a fuse.
    params: what the kind needs, such as {"block_m": 128, "block_n": 128, "block_k": 32}.
    phrase: fixed English of about 8 tokens: "retile r1 to 128x128x32".
    reason: one sentence drawn from evidence, shown to the user.
    """

    kind: str
    phrase: str
    region: str = ""
    other: str = ""
    params: dict[str, Param] = {}
    reason: str = ""


class ScoredAction(Struct, frozen=True):
    """An action with its probability among the legal ones.

    parts: the probabilities that were mixed into it, by source: {"llama": …, "roofline": …}.
    """

    action: Action
    probability: float
    parts: dict[str, float] = {}


# Steps that often pay only together with a later one: under --yes they stay open as a branch.
ENABLING = frozenset({"lower", "fuse", "fuse_epilogue", "layout", "split", "simplify", "library"})

"""Rows shared by several programs: which groups allow it, and with which parameters."""

from __future__ import annotations

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.program import Param, Templated
from mtmc_engine.schedule.templates.passes import pairs_of, sweeps
from mtmc_engine.schedule.templates.space import Space
from mtmc_engine.schedule.templates.trace import Trace

MOST_SPLITS = 256
# A share shorter than this is not worth a program.
SHORTEST_SHARE = 4096
_INNER_LANES = 64


def split_form(program: Trace, space: Space, device: DeviceCard) -> Templated | None:
    """The split template with parameters that fill the card; None where the group has none.

    Every reduction must be known after one sweep, so that programs can share it.
    """
    if not space.folded or any(value.kind == "scan" for value in program.folds):
        return None
    known = sweeps(program, pairs_of(program))
    if any(known[fold] != 1 for fold in program.reductions if fold not in space.finished):
        return None
    lanes = min(_INNER_LANES, _power(space.inner.size)) if space.inner.runs else 1
    block = 2048 // lanes if space.inner.runs else 2048
    rows = space.outer.size * -(-space.inner.size // lanes)
    shares = max(1, 4 * device.sms // max(1, rows))
    longest = max(1, space.reduced.size * lanes // SHORTEST_SHARE)
    splits = min(MOST_SPLITS, _power(min(shares, longest)))
    if splits < 2:
        return None
    params: dict[str, Param] = {"block_cols": block, "splits": splits, "warps": 4}
    if space.inner.runs:
        params["rows_per_program"] = lanes
    return Templated("split", params)


def _power(size: int) -> int:
    """The largest power of two that is not above `size`."""
    return 1 << (max(size, 1).bit_length() - 1)

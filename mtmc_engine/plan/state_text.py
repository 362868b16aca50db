"""The state as a language model reads it: a pure, versioned function of the compact state.

An adapter carries the version of the text that it was trained on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from mtmc_engine.plan.state import GroupView, Observation, OperatorView, PastStep, State, observe

STATE_TEXT_VERSION = 1
# Tokens of the changing part: what a 135M model on two cores reads in well under a second.
CHANGING_TOKENS = 120
_OPERATORS_SHOWN = 16
_STEPS_SHOWN = 4
_HINTS_SHOWN = 3
_HINT_CHARACTERS = 120
_LABEL_CHARACTERS = 24
_INSTRUCTIONS = """\
Make a GPU program faster in small steps. Each step does one action on one region.
lower: write the region in Triton. library: call torch for it. fuse: join two regions in one \
kernel. fuse_epilogue: compute what follows a matmul in its kernel. one_pass: read the data once. \
retile, pipeline, vectorize: tune a kernel. stop: no step will help.
"""
_END = "Next step:"


class StateText(NamedTuple):
    """prefix: the same at every step of a session until the user gives a hint.

    changing: at most CHANGING_TOKENS tokens; a phrase is its natural continuation.
    """

    prefix: str
    changing: str


def state_text(state: State) -> StateText:
    """The text of a state."""
    return text_of(observe(state))


def text_of(seen: Observation) -> StateText:
    """The text of a compact state. Equal observations give equal texts."""
    return StateText(_prefix(seen), _changing(seen))


def _prefix(seen: Observation) -> str:
    card = seen.device
    tflops = ", ".join(f"{mode} {_short(value)}" for mode, value in sorted(card.tflops.items()))
    lines = [
        f"GPU: {card.name}, {card.sms} SMs, {card.bandwidth_gbs:.0f} GB/s, {tflops} TFLOP/s.",
        f"Task: {seen.task} of {', '.join(seen.inputs)}.",
        *map(_operator_line, seen.operators[:_OPERATORS_SHOWN]),
    ]
    more = len(seen.operators) - _OPERATORS_SHOWN
    if more > 0:
        lines.append(f"and {more} more regions")
    lines += [f"Hint: {_clip(hint, _HINT_CHARACTERS)}" for hint in seen.hints[-_HINTS_SHOWN:]]
    return _INSTRUCTIONS + "\n".join(lines) + "\n"


def _operator_line(operator: OperatorView) -> str:
    if not operator.dtype:
        return f"{operator.region} {operator.label}"
    shape = "x".join(map(str, operator.shape)) or "scalar"
    return (
        f"{operator.region} {operator.label}: {operator.dtype} {shape}, "
        f"{_scaled(operator.bytes_moved)}B, {_scaled(operator.flops)}FLOP"
    )


def _changing(seen: Observation) -> str:
    """Head, regions by their share of time, last steps, end; what exceeds the budget is left out.

    Regions and steps are taken in turn, the costliest and the latest first.
    """
    now = _time(seen.time_us) if seen.time_us else "time unknown"
    times = f"{now}, floor {_time(seen.floor_us)}"
    head = f"Step {seen.step} of {seen.max_steps}. {times}"
    room = CHANGING_TOKENS - token_bound(head + "\n" + _END)
    regions: list[str] = []
    steps: list[str] = []
    for line, chosen in _lines_by_weight(seen, regions, steps):
        cost = token_bound(line + "\n")
        if cost > room:
            break
        room -= cost
        chosen.append(line)
    return "\n".join([head, *regions, *reversed(steps), _END])


def _lines_by_weight(
    seen: Observation, regions: list[str], steps: list[str]
) -> Iterator[tuple[str, list[str]]]:
    costliest = sorted(seen.groups, key=lambda group: -group.share)
    latest = list(reversed(seen.history[-_STEPS_SHOWN:]))
    for group, past in zip_longest(costliest, latest):
        if group is not None:
            yield _group_line(group), regions
        if past is not None:
            yield _step_line(past), steps


def _group_line(group: GroupView) -> str:
    label = _clip(group.label, _LABEL_CHARACTERS)
    distance = f"{group.of_peak:.0%} {group.bound}"
    return f"{group.region} {label} {group.form} {group.share:.0%} time, {distance}"


def _step_line(past: PastStep) -> str:
    effect = past.verdict.lower() if past.ratio is None else f"{past.ratio:.2g}x"
    return f"{past.phrase}: {effect}, {'kept' if past.kept else 'undone'}"


_PIECE = re.compile(r"[A-Za-z]+|\d| (?=\d)|[^\sA-Za-z\d]|\n")
_ONE_TOKEN = re.compile(
    r"time|memory|compute|launch|torch|step|of|floor|next|fuse|lower|into|to|with|library|linear"
    r"|max|min|sum|mean|by|hand|loop|rows|pipeline|pass|one|norm|layer|us|ms|same|numeric|timeout"
    r"|resources|access|conv|add|mul|exp|cross|batch|attention|product|dot|scaled",
    re.IGNORECASE,
)


def token_bound(text: str) -> int:
    """An upper bound for the tokens of a text made of our own words.

    Holds for tokenizers that split numbers into digits and know common English: a digit, a
    punctuation mark and a line's end are a token each; so is a common word, and of any other word
    every two letters.
    """
    return sum(map(_piece_bound, _PIECE.findall(text)))


def _piece_bound(piece: str) -> int:
    if _ONE_TOKEN.fullmatch(piece):
        return 1
    return -(-len(piece) // 2) if piece.isascii() else len(piece.encode())


def _clip(text: str, characters: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= characters else flat[: characters - 1] + "…"


def _time(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{_short(microseconds)}us"
    return f"{_short(microseconds / 1000)}ms"


def _scaled(count: float) -> str:
    for unit in ("", "k", "M", "G"):
        if count < 1000:
            return f"{_short(count)}{unit}"
        count /= 1000
    return f"{_short(count)}T"


def _short(value: float) -> str:
    """Two significant digits, without an exponent: numbers are costly in tokens."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"

"""Other numbers of warps or stages at a launch, or of stages in a loop."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import libcst as cst

from mtmc_engine.schedule.source.code import Edit, dotted, walk
from mtmc_engine.schedule.source.flow import Flow
from mtmc_engine.schedule.source.listing import Kernel, Listing
from mtmc_engine.schedule.source.rewrite import (
    STAGES,
    WARPS,
    Rewrite,
    Setting,
    option_of,
    with_option,
)

_WARPS = (4, 8, 2, 16)
_STAGES = (4, 3, 2, 5)
_PER_KERNEL = 2


def rewrites(listing: Listing, setting: Setting) -> Iterator[Rewrite]:
    """Stages of loops that load, and warps."""
    for kernel in listing.kernels.values():
        launches = listing.launches_of(kernel)
        if not launches or kernel.is_tuned or not all(launch.whole for launch in launches):
            continue
        flow = Flow(listing, kernel)
        loading = [loop for loop in flow.loops if _loads(flow, loop)]
        if flow.dots and loading:
            yield from _options(listing, kernel, "num_stages", STAGES)
        else:
            yield from _loop_stages(listing, flow, loading)
        yield from _options(listing, kernel, "num_warps", WARPS)


def _loads(flow: Flow, loop: cst.For) -> bool:
    return any(flow.loaded(node) is not None for node in walk(loop.body))


def _options(listing: Listing, kernel: Kernel, option: str, default: int) -> Iterator[Rewrite]:
    launches = listing.launches_of(kernel)
    now = {option_of(launch, option, default) for launch in launches}
    if len(now) != 1 or None in now:
        return
    (value,) = now
    assert value is not None
    word = option.removeprefix("num_")
    known = _WARPS if word == "warps" else _STAGES
    near = sorted((n for n in known if n != value), key=lambda n: (abs(math.log2(n / value)), -n))
    for count in near[:_PER_KERNEL]:
        yield Rewrite(
            kernel.name,
            kernel.name,
            f"with {count} {word}",
            _why(kernel.name, word, value, count),
            listing,
            lambda count=count: [  # type: ignore[misc]
                edit for launch in launches for edit in with_option(listing, launch, option, count)
            ],
            {word: count},
        )


def _why(kernel: str, word: str, now: int, count: int) -> str:
    if word == "stages":
        what = "keep more loads in flight while it computes" if count > now else "need less memory"
        return f"{kernel} runs its loop with {now} stages: {count} would {what}."
    what = "share its block among more threads" if count > now else "give each thread more of it"
    return f"{kernel} runs with {now} warps: {count} would {what}."


def _loop_stages(listing: Listing, flow: Flow, loops: list[cst.For]) -> Iterator[Rewrite]:
    """Stages of a loop without products, which the launch's own do not reach."""
    counts: Counter[str] = Counter()
    places = {}
    for loop in flow.loops:
        label = flow.label(loop)
        counts[label] += 1
        places[loop] = f"{flow.kernel.name}/{label} {counts[label]}"
    for loop in loops:
        call = loop.iter
        if not isinstance(call, cst.Call) or any(a.star for a in call.args):
            continue
        named = {a.keyword.value: a for a in call.args if a.keyword is not None}
        is_range = listing.word(call) == "range"
        if not is_range and (dotted(call.func) != "range" or named):
            continue
        given = named["num_stages"].value if "num_stages" in named else None
        if given is not None and not isinstance(given, cst.Integer):
            continue
        now = int(given.value, 0) if given is not None else 0
        if any(word in named for word in ("flatten", "warp_specialize")):
            continue
        for count in [n for n in (3, 2, 4) if n != now][: 1 if now == 0 else _PER_KERNEL]:
            yield Rewrite(
                places[loop],
                flow.kernel.name,
                f"with {count} stages",
                f"The {flow.label(loop)} waits for its loads: {count} stages would keep "
                f"{count - 1} of them in flight.",
                listing,
                lambda call=call, given=given, count=count: _staged(  # type: ignore[misc]
                    listing, call, given, count
                ),
                {"stages": count},
            )


def _staged(listing: Listing, call: cst.Call, given: cst.Integer | None, count: int) -> list[Edit]:
    code = listing.code
    if given is not None:
        return [code.replaced(given, str(count))]
    edits = []
    if listing.word(call) != "range":
        word = sorted(listing.language, key=len)[0]
        edits.append(code.replaced(call.func, f"{word}.range"))
    end = code.end(call.args[-1])
    return [*edits, Edit(end, end, f", num_stages={count}")]

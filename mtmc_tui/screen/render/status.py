"""The lines that are always in sight: status and tabs above, keys below."""

from __future__ import annotations

import re
from pathlib import Path

from textual.content import Content

from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.keys import Key
from mtmc_tui.screen.model import Snapshot
from mtmc_tui.screen.render.talk import meter_text
from mtmc_tui.screen.render.words import (
    Part,
    dtype_text,
    duration_text,
    fitted,
    spread,
    task_kind,
)
from mtmc_tui.screen.view import PANES, View

# A model's file name: its folder, tuning and quantisation say little here.
MODEL_FILE = re.compile(
    r"(?:\S*/)?(?P<model>[^\s/:]+?)(?:-(?:Instruct|Chat|it))?(?:[.-]I?Q\d\w*)?\.gguf"
)


def status_line(snapshot: Snapshot, view: View, width: int) -> Content:
    """File, task, device, planner and coder, and whether the file is watched."""
    signs = view.glyphs
    session, task = snapshot.session, snapshot.task
    if session is None:
        return Content.assemble((" mtmc ", "bold"), ("starting the engine", "$quiet"))
    words: list[tuple[str, str]] = [(Path(session.file).name, "bold")]
    if task is not None:
        shapes = task.shapes[0] + (f" +{len(task.shapes) - 1}" if len(task.shapes) > 1 else "")
        dtypes = " ".join(dict.fromkeys(dtype_text(dtype) for dtype in task.dtypes))
        name = "" if task.task == Path(session.file).stem else f"{task.task} "
        words.append((f"{name}{shapes} {dtypes}", ""))
        words.append(_device(snapshot, signs))
    else:
        words.append((f"for {session.target}", "$quiet"))
    planner = (f"planner {planner_text(session.planner, signs)}", "$quiet")
    coder = (f"coder {session.coder}", "$quiet")
    if session.coder_address:  # what costs and where prompts go comes before who plans
        words += [coder, (f"at {session.coder_address}", "$quiet"), planner]
    else:
        words += [planner, coder]
    meter = meter_text(snapshot.budget, signs, roomy=width >= 100)
    right = Content.assemble((f"{meter}  " if meter else "", ""), _watching(snapshot, view), " ")
    room = width - right.cell_length - 1
    gap = "   " if sum(len(text) + 3 for text, _ in words) < room else "  "
    return spread(
        fitted([(" ", ""), *((text + gap, style) for text, style in words)], room), right, width
    )


def planner_text(name: str, signs: Glyphs) -> str:
    """ "llama:SmolLM2-135M-Instruct.Q4_1.gguf 0.2 + …" as "llama·SmolLM2-135M 0.2 + …"."""
    short = MODEL_FILE.sub(lambda found: found["model"], name)
    return short.replace("llama:", f"llama{signs.dot}")


def _device(snapshot: Snapshot, signs: Glyphs) -> tuple[str, str]:
    task = snapshot.task
    assert task is not None
    if task.measured:
        return task.device, "$state-approved"
    kind = task_kind(task)
    words = {"estimated": "estimates", "replayed": "replayed times"}
    what = f"{signs.of(kind)}{words[kind]}" if kind in words else "not timed"
    return f"{task.device} {signs.dot} {what}", "$state-estimated"


def _watching(snapshot: Snapshot, view: View) -> tuple[str, str]:
    signs = view.glyphs
    if snapshot.stale is not None:
        return f"{signs.warning} file changed", "bold $state-slower"
    if snapshot.failure is not None:
        return f"{signs.failed} failed", "$state-failed"
    if snapshot.paused:
        return f"{signs.open} paused", "$state-slower"
    if not snapshot.running:
        return f"{signs.kept} finished", "$state-approved"
    if view.watching:
        return f"{signs.original} watching", "$state-approved"
    return f"{signs.open} not watching", "$quiet"


def tab_strip(view: View) -> Content:
    """The panes by number, for a screen that shows one at a time."""
    parts: list[str | tuple[str, str]] = []
    for number, name in enumerate(PANES, 1):
        here = number == view.pane
        style = "bold reverse" if here else "$quiet"
        parts += [(f" {number} {name} ", f"{style} @click=screen.pane({number})"), " "]
    return Content.assemble(*parts)


def footer_line(keys: list[Key], snapshot: Snapshot, width: int, now: float) -> Content:
    """At most seven keys that can be pressed now, then the step and the time.

    Where they do not fit, keys before the last one, which is help, give way.
    """
    progress = Content(_progress(snapshot, now) + " ")
    keys = list(keys)
    while len(keys) > 1 and _keys_width(keys) + progress.cell_length > width:
        del keys[-2]
    parts: list[str | Part] = [" "]
    for key in keys:
        parts += [
            (key.shown, f"bold $footer-key-foreground @click=screen.{key.action}"),
            (f" {key.label}", f"@click=screen.{key.action}"),
            "  ",
        ]
    return spread(Content.assemble(*parts), progress, width)


def _keys_width(keys: list[Key]) -> int:
    return 1 + sum(len(key.shown) + len(key.label) + 3 for key in keys)


def _progress(snapshot: Snapshot, now: float) -> str:
    if snapshot.session is None:
        return ""
    end = snapshot.ended_at if snapshot.ended_at is not None else now
    elapsed = duration_text(end - snapshot.started_at)
    if not snapshot.step:
        return elapsed
    return f"step {snapshot.step}/{snapshot.session.max_steps}  {elapsed}"

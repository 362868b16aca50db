"""The lines that are always in sight: status above; question or activity, and keys, below."""

from __future__ import annotations

import re
from pathlib import Path

from textual.content import Content

from mtmc_engine.core.measurement import Ratio
from mtmc_engine.core.verdict import PROVEN, Class
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.keys import Key
from mtmc_tui.screen.model import Node, Snapshot
from mtmc_tui.screen.render.words import (
    Part,
    dtype_text,
    duration_text,
    interval_text,
    ratio_text,
    spread,
)
from mtmc_tui.screen.view import PANES, View

# A model's file name: its folder, tuning and quantisation say little here.
MODEL_FILE = re.compile(
    r"(?:\S*/)?(?P<model>[^\s/:]+?)(?:-(?:Instruct|Chat|it))?(?:[.-]I?Q\d\w*)?\.gguf"
)

PHASES = {
    "capture": "capturing the operator graph",
    "plan": "planning",
    "code": "coding",
    "prove": "proving",
    "time": "timing",
    "export": "exporting",
}


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
    words += [
        (f"planner {planner_text(session.planner, signs)}", "$quiet"),
        (f"coder {session.coder}", "$quiet"),
    ]
    right = Content.assemble(_watching(snapshot, view), " ")
    room = width - right.cell_length - 1
    gap = "   " if sum(len(text) + 3 for text, _ in words) < room else "  "
    return spread(
        fitted([(" ", ""), *((text + gap, style) for text, style in words)], room), right, width
    )


def planner_text(name: str, signs: Glyphs) -> str:
    """ "llama:SmolLM2-135M-Instruct.Q4_1.gguf 0.2 + …" as "llama·SmolLM2-135M 0.2 + …"."""
    short = MODEL_FILE.sub(lambda found: found["model"], name)
    return short.replace("llama:", f"llama{signs.dot}")


def fitted(parts: list[Part], width: int) -> Content:
    """The first parts that fit in `width` cells: what is last goes first. One is always there."""
    line = Content("")
    for text, style in parts:
        if line.cell_length + len(text.rstrip()) > width and line.plain.strip():
            break
        line += Content.styled(text, style)
    return line


def _device(snapshot: Snapshot, signs: Glyphs) -> tuple[str, str]:
    task = snapshot.task
    assert task is not None
    if task.measured:
        return task.device, "$state-approved"
    return f"{task.device} {signs.dot} {signs.about}estimates", "$state-estimated"


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


def activity_line(snapshot: Snapshot, view: View, width: int, now: float) -> Content:
    """The question that waits; else what the engine does now, how long, and what is left."""
    if snapshot.question is not None:
        return fitted(_question(snapshot, view), width)
    if snapshot.failure is not None:
        return _said(view.glyphs.failed, snapshot.failure.text, "$state-failed")
    if snapshot.stale is not None:
        text = "the file changed on disk: u replays the approved plan on the new source"
        return _said(view.glyphs.warning, text, "$state-slower")
    if snapshot.finished is not None:
        return fitted(_answer(snapshot, view.glyphs), width)
    if snapshot.phase is None:
        return _said(view.glyphs.running, "starting the engine", "$quiet")
    return fitted(_phase(snapshot, view.glyphs, now), width)


def question_text(snapshot: Snapshot) -> str:
    """The question that waits, as the terminal's title has it; empty where none does."""
    question = snapshot.question
    if question is None:
        return ""
    return "stop here?" if snapshot.stopping else f"keep {question.action.phrase}?"


def _question(snapshot: Snapshot, view: View) -> list[Part]:
    question = snapshot.question
    assert question is not None
    node = snapshot.nodes.get(question.node)
    parts: list[Part] = [
        (f" {view.glyphs.ask} ", "bold reverse $state-proposed"),
        (f" {question_text(snapshot)}", "bold"),
    ]
    if node is not None and not snapshot.stopping:
        words, style = verdict_words(node, view.glyphs)
        parts.append((f"  {words}", style))
    if question.suggestion_reason:
        parts.append((f"  {question.suggestion_reason}", "$quiet"))
    if question.choices:
        parts.append((f"  suggested: {question.choices[0]}", "$quiet"))
    return parts


def verdict_words(node: Node, signs: Glyphs) -> tuple[str, str]:
    """The verdict in a few words with its style: "FASTER 1.55x [1.52, 1.58] than previous"."""
    verdict = node.verdict
    if verdict is None:
        return "no verdict yet", "$quiet"
    if verdict.verdict not in PROVEN:
        return f"{signs.failed} {verdict.verdict}", "$state-failed"
    style = {Class.FASTER: "$state-faster", Class.SLOWER: "$state-slower"}
    text = f"{signs.kept} {verdict.verdict}"
    if verdict.measurement is not None:
        ratio = compared(verdict.measurement.against)
        if ratio is not None:
            name, value = ratio
            text += f" {interval_text(value, signs, verdict.measurement.kind)} vs {name}"
    return text, style.get(verdict.verdict, "")


def compared(against: dict[str, Ratio]) -> tuple[str, Ratio] | None:
    """The baseline that a step is judged by: the step before, else the original."""
    for name in ("previous", "original", "eager"):
        if name in against:
            return name, against[name]
    return None


def _phase(snapshot: Snapshot, signs: Glyphs, now: float) -> list[Part]:
    phase = snapshot.phase
    assert phase is not None
    elapsed = now - snapshot.phase_at
    subject = _subject(snapshot)
    detail = phase.detail if phase.detail != subject else ""
    text = PHASES.get(phase.phase, phase.phase)
    if phase.phase == "wait":
        text = "paused: p goes on" if snapshot.paused else "going on"
        subject = detail = ""
    parts: list[Part] = [
        (f" {signs.running} ", "$state-running"),
        (text, "bold"),
        (f"  {duration_text(elapsed)}", "$quiet"),
    ]
    if subject:
        parts.append((f"  {subject}", ""))
    if snapshot.paused and phase.phase != "wait":
        parts.append(("  pauses after this step", "$state-slower"))
    if detail:
        parts.append((f"  {detail}", "$quiet"))
    if phase.total and phase.done is not None:
        parts.append((f"  {counted_bar(phase.done, phase.total, signs)}", ""))
    if phase.budget_s is not None:
        left = duration_text(phase.budget_s - elapsed)
        parts.append((f"  {left} left of the budget", "$quiet"))
    return parts


def _subject(snapshot: Snapshot) -> str:
    if snapshot.pending is not None:
        attempt = f" (attempt {snapshot.pending.attempt})" if snapshot.pending.attempt > 1 else ""
        return snapshot.pending.action.phrase + attempt
    node = snapshot.nodes.get(snapshot.live)
    return node.action.phrase if node and node.action else ""


def counted_bar(done: int, total: int, signs: Glyphs, width: int = 16) -> str:
    """A bar for something that is counted, with its numbers."""
    filled = round(width * min(done, total) / total)
    return f"{signs.bar * filled}{signs.estimated_bar * (width - filled)} {done}/{total}"


def _answer(snapshot: Snapshot, signs: Glyphs) -> list[Part]:
    finished = snapshot.finished
    assert finished is not None
    best = finished.best
    parts: list[Part] = [(f" {signs.kept} ", "$state-approved"), ("finished", "bold")]
    if best.is_original:
        parts.append(("  no step helped: the answer is the original", ""))
    else:
        kind = best.time_kind or "measured"
        ratio = ratio_text(best.ratio_to_original or 1.0, signs, kind)
        word = "measured" if kind == "measured" else "ESTIMATED"
        parts.append((f"  {ratio} {word}: {', '.join(best.actions) or best.node}", ""))
    folder = finished.export or (snapshot.exported.folder if snapshot.exported else "")
    if folder:
        parts.append((f"  exported to {folder}", "$quiet"))
    parts.append((f"  stopped by {finished.stopped_by}", "$quiet"))
    return parts


def _said(glyph: str, text: str, style: str) -> Content:
    return Content.assemble((f" {glyph} ", f"bold {style}"), (text, style))


def footer_line(keys: list[Key], snapshot: Snapshot, width: int, now: float) -> Content:
    """At most seven keys that can be pressed now, then the step and the time."""
    parts: list[str | tuple[str, str]] = [" "]
    for key in keys:
        parts += [
            (key.shown, f"bold $footer-key-foreground @click=screen.{key.action}"),
            (f" {key.label}", f"@click=screen.{key.action}"),
            "  ",
        ]
    return spread(Content.assemble(*parts), Content(_progress(snapshot, now) + " "), width)


def _progress(snapshot: Snapshot, now: float) -> str:
    if snapshot.session is None:
        return ""
    end = snapshot.ended_at if snapshot.ended_at is not None else now
    elapsed = duration_text(end - snapshot.started_at)
    if not snapshot.step:
        return elapsed
    return f"step {snapshot.step}/{snapshot.session.max_steps}  {elapsed}"

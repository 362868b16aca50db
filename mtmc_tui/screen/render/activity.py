"""The lines above the keys: the question that waits, or what the engine does now."""

from __future__ import annotations

from textual.content import Content

from mtmc_engine.core.events import PromptReady, SessionFinished
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import Pending, Snapshot
from mtmc_tui.screen.render.verdicts import verdict_words
from mtmc_tui.screen.render.words import Part, count_text, duration_text, fitted, ratio_text
from mtmc_tui.screen.view import View

PHASES = {
    "capture": "capturing the operator graph",
    "plan": "planning",
    "code": "coding",
    "prove": "proving",
    "time": "timing",
    "export": "exporting",
}


def activity_text(snapshot: Snapshot, view: View, width: int, now: float) -> Content:
    """The question that waits; else what the engine does now, how long, and what is left.

    One line, or a few where a question has a reason or a failure is long.
    """
    if snapshot.question is not None or snapshot.unsent is not None:
        return _asked(snapshot, view, width)
    if snapshot.failure is not None:
        return _said(view.glyphs.failed, snapshot.failure.text, "$state-failed", width)
    if snapshot.stale is not None:
        text = "the file changed on disk: u replays the approved plan on the new source"
        return _said(view.glyphs.warning, text, "$state-slower", width)
    if snapshot.finished is not None:
        return Content("\n").join(_ended(snapshot, view.glyphs, width))
    return _at_work(snapshot, view, width, now)


def _at_work(snapshot: Snapshot, view: View, width: int, now: float) -> Content:
    if snapshot.phase is None:
        return _said(view.glyphs.running, "starting the engine", "$quiet", width)
    if snapshot.wait is not None:
        return _waits(snapshot, view, width, now)
    return fitted(_phase(snapshot, view.glyphs, now), width)


def question_text(snapshot: Snapshot) -> str:
    """The question that waits, as the terminal's title has it; empty where none does."""
    question = snapshot.question
    if question is None:
        return "send this prompt?" if snapshot.unsent is not None else ""
    if question.about == "coder":
        return f"the coder cannot be asked for {question.action.phrase}: what now?"
    return "stop here?" if snapshot.stopping else f"keep {question.action.phrase}?"


def _asked(snapshot: Snapshot, view: View, width: int) -> Content:
    if snapshot.question is not None:
        return _question(snapshot, view, width)
    assert snapshot.unsent is not None
    return _unsent(snapshot.unsent, view, width)


def _question(snapshot: Snapshot, view: View, width: int) -> Content:
    question = snapshot.question
    assert question is not None
    node = snapshot.nodes.get(question.node)
    parts: list[Part] = [
        (f" {view.glyphs.ask} ", "bold reverse $state-proposed"),
        (f" {question_text(snapshot)}", "bold"),
    ]
    if node is not None and snapshot.waiting(node):
        words, style = verdict_words(node, view.glyphs)
        parts.append((f"  {words}", style))
    advice = f"suggested: {question.choices[0]}. {question.suggestion_reason}"
    if question.about == "coder":
        advice = f"{question.suggestion_reason} g asks again, s skips the step, S ends the run."
    if snapshot.stopping:
        advice += " r takes the next step instead."
    return Content("\n").join([fitted(parts, width), *_indented(advice, "$quiet", width)])


def _unsent(prompt: PromptReady, view: View, width: int) -> Content:
    """A prompt waits to be read."""
    parts: list[Part] = [
        (f" {view.glyphs.ask} ", "bold reverse $state-proposed"),
        (" send this prompt?", "bold"),
        (f"  {view.glyphs.about}{count_text(prompt.tokens)} tokens to {prompt.coder}", ""),
        (f"  at {prompt.address}" if prompt.address else "", "$quiet"),
    ]
    advice = "enter: send; s skips the step. Nothing has left this machine yet."
    return Content("\n").join([fitted(parts, width), *_indented(advice, "$quiet", width)])


def _waits(snapshot: Snapshot, view: View, width: int, now: float) -> Content:
    """The coder waits: how long still, and why."""
    wait = snapshot.wait
    assert wait is not None
    left = max(0.0, wait.seconds - (now - snapshot.wait_at))
    tries = "1 try" if wait.tries_left == 1 else f"{wait.tries_left} tries"
    parts: list[Part] = [
        (f" {view.glyphs.warning} ", "bold $state-slower"),
        ("the coder waits", "bold"),
        (f"  {duration_text(left + 0.999)}", "bold"),
        (f"  {tries} left", "$quiet"),
    ]
    return Content("\n").join([fitted(parts, width), *_indented(wait.reason, "$quiet", width)])


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
        left = duration_text(max(0.0, phase.budget_s - (now - snapshot.told_at)))
        parts.append((f"  {left} left of the budget", "$quiet"))
    if snapshot.notices:
        parts.append((f"  {snapshot.notices[-1].text}", "$quiet"))
    return parts


def _subject(snapshot: Snapshot) -> str:
    if snapshot.pending is not None:
        return snapshot.pending.action.phrase + _which(snapshot.pending)
    node = snapshot.nodes.get(snapshot.live)
    return node.action.phrase if node and node.action else ""


def _which(pending: Pending) -> str:
    """ " (attempt 2: fix_math, 3 samples)"; "" for the only candidate of a first attempt."""
    parts = []
    if pending.attempt > 1:
        repair = f": {pending.repair}" if pending.repair else ""
        parts.append(f"attempt {pending.attempt}{repair}")
    if pending.samples > 1:
        parts.append(f"{pending.samples} samples")
    return f" ({', '.join(parts)})" if parts else ""


def counted_bar(done: int, total: int, signs: Glyphs, width: int = 16) -> str:
    """A bar for something that is counted, with its numbers."""
    filled = round(width * min(done, total) / total)
    return f"{signs.bar * filled}{signs.estimated_bar * (width - filled)} {done}/{total}"


def _ended(snapshot: Snapshot, signs: Glyphs, width: int) -> list[Content]:
    """The answer; why it is that, and where it was exported to, on lines of their own."""
    finished = snapshot.finished
    assert finished is not None
    lines = [fitted(_answer(finished, signs), width)]
    folder = finished.export or (snapshot.exported.folder if snapshot.exported else "")
    for text in (finished.best.reason, f"exported to {folder}" if folder else ""):
        lines += _indented(text, "$quiet", width) if text else []
    return lines


def _answer(finished: SessionFinished, signs: Glyphs) -> list[Part]:
    best = finished.best
    parts: list[Part] = [(f" {signs.kept} ", "$state-approved"), ("finished", "bold")]
    if best.is_original:
        parts.append(("  the answer is the original", ""))
    elif best.time_kind is None or best.ratio_to_original is None:
        parts.append((f"  not timed: {', '.join(best.actions)}", ""))
    else:
        ratio = ratio_text(best.ratio_to_original, signs, best.time_kind)
        word = best.time_kind if best.time_kind == "measured" else best.time_kind.upper()
        parts.append((f"  {ratio} {word}: {', '.join(best.actions) or best.node}", ""))
    parts.append((f"  stopped by {finished.stopped_by}", "$quiet"))
    return parts


def _said(glyph: str, text: str, style: str, width: int) -> Content:
    first, *others = _indented(text, style, width)
    return Content("\n").join([Content.styled(f" {glyph}  ", f"bold {style}") + first[4:], *others])


def _indented(text: str, style: str, width: int) -> list[Content]:
    lines = Content.styled(text.strip(), style).wrap(max(20, width - 5))
    return ["    " + line for line in lines]

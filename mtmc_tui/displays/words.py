"""Events as readable lines."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch

from mtmc_engine.core.action import ScoredAction
from mtmc_engine.core.chat import Usage
from mtmc_engine.core.events import (
    AnyEvent,
    BestChanged,
    BestSummary,
    BudgetChanged,
    CandidateReady,
    CoderWaits,
    Decided,
    Exported,
    GateFinished,
    NodeAdded,
    Notice,
    PhaseChanged,
    PlanProposed,
    PromptReady,
    ReplyFinished,
    RunPaused,
    SessionFinished,
    SessionStarted,
    SourceChanged,
    StepStarted,
    TaskOpened,
    VerdictReached,
)
from mtmc_engine.core.measurement import Measurement, Ratio
from mtmc_engine.core.verdict import Gate, Verdict

# Options of a plan that are worth a reader's time.
SHOWN_OPTIONS = 4


_INSTEAD = {
    "estimated": "times are estimated",
    "replayed": "times are replayed from a recording",
    "none": "nothing here can time it",
}


@singledispatch
def lines_of(event: AnyEvent) -> Iterator[tuple[str, str]]:
    """Lines of an event with their style: "good", "bad", "weak", "strong" or "".

    Events that say nothing to a reader of lines have none.
    """
    return iter(())


@lines_of.register
def _(event: SessionStarted) -> Iterator[tuple[str, str]]:
    resumed = f", resumed after {_count(event.resumed, 'step')}" if event.resumed else ""
    yield f"session {event.session}{resumed}", "strong"
    at = f" at {event.coder_address}" if event.coder_address else ""
    yield (
        f"  {event.file} for {event.target}, planner {event.planner}, coder {event.coder}{at}",
        "weak",
    )


@lines_of.register
def _(event: PhaseChanged) -> Iterator[tuple[str, str]]:
    if event.phase in ("capture", "export") and event.done is None:
        yield f"{event.phase}: {event.detail}" if event.detail else event.phase, "weak"


@lines_of.register
def _(event: TaskOpened) -> Iterator[tuple[str, str]]:
    how = "measured" if event.measured else _INSTEAD[event.instead]
    shapes = ", ".join(event.shapes)
    dtypes = ", ".join(event.dtypes)
    yield f"task {event.task}: {shapes} {dtypes} on {event.device} ({how})", "strong"
    regions = ", ".join(f"{region.id} {region.label}" for region in event.regions)
    yield f"  regions: {regions or 'none'}", ""
    for note in event.notes:
        yield f"  note: {note}", "weak"


@lines_of.register
def _(event: NodeAdded) -> Iterator[tuple[str, str]]:
    if event.parent is None:
        time = time_text(event.measurement) if event.measurement else "not timed"
        yield f"{event.node} is the original: {time}", ""


@lines_of.register
def _(event: PlanProposed) -> Iterator[tuple[str, str]]:
    shown = ", ".join(_option(option) for option in event.options[:SHOWN_OPTIONS])
    more = len(event.options) - SHOWN_OPTIONS
    rest = f", {more} more" if more > 0 else ""
    yield f"plan at {event.node} ({event.planner}, {event.seconds:.1f} s): {shown}{rest}", ""


@lines_of.register
def _(event: StepStarted) -> Iterator[tuple[str, str]]:
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    again += f" ({event.repair})" if event.repair else ""
    again += f", {event.samples} samples" if event.samples > 1 else ""
    why = f": {event.action.reason}" if event.action.reason else ""
    yield f"step {event.step}: {event.action.phrase}{again}{why}", "strong"


@lines_of.register
def _(event: PromptReady) -> Iterator[tuple[str, str]]:
    to = f" at {event.address}" if event.address else ""
    text = f"prompt to {event.coder}{to}: about {event.tokens:,} tokens{_sample(event.sample)}"
    yield f"  {text}{', waits to be sent' if event.waits else ''}", "weak"
    if event.waits:
        for message in event.messages:
            yield f"  --- {message.role} ---", "strong"
            for line in message.content.splitlines():
                yield f"  {line}", ""


@lines_of.register
def _(event: ReplyFinished) -> Iterator[tuple[str, str]]:
    facts = [event.finish, f"{event.seconds:.1f} s"] if event.finish else [f"{event.seconds:.1f} s"]
    if event.usage is not None:
        facts.append(usage_text(event.usage))
    if event.cost_usd:
        facts.append(f"${event.cost_usd:.4f}")
    said = "" if event.outcome == "code" else f": {event.outcome}"
    text = f"reply{_sample(event.sample)} ({', '.join(facts)}){said}"
    yield f"  {text}", "weak" if event.outcome == "code" else "bad"


@lines_of.register
def _(event: CoderWaits) -> Iterator[tuple[str, str]]:
    tries = "1 try" if event.tries_left == 1 else f"{event.tries_left} tries"
    yield f"  {event.coder} waits {event.seconds:.0f} s: {event.reason} ({tries} left)", "bad"


@lines_of.register
def _(event: BudgetChanged) -> Iterator[tuple[str, str]]:
    if event.tokens:
        yield f"  used so far: {budget_text(event)}", "weak"


@lines_of.register
def _(event: CandidateReady) -> Iterator[tuple[str, str]]:
    lines = event.diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    which = f" (sample {event.sample + 1})" if event.sample else ""
    yield f"  {event.node}: +{added} -{removed} lines by {event.coder}{which}", ""


@lines_of.register
def _(event: GateFinished) -> Iterator[tuple[str, str]]:
    result = event.result
    timing = result.evidence.get("timing")
    if result.passed and isinstance(timing, str):  # nothing was timed
        yield f"  {result.gate.value}: {timing}", ""
        return
    word = "ok" if result.passed else "FAILED"
    said = f": {result.sentence}" if result.sentence else ""
    style = "" if result.passed else "bad"
    yield f"  {result.gate.value} {word}, {result.seconds:.1f} s{said}", style


@lines_of.register
def _(event: VerdictReached) -> Iterator[tuple[str, str]]:
    verdict = event.verdict
    time = f", {time_text(verdict.measurement)}" if verdict.measurement else ""
    style = "good" if verdict.verdict == "FASTER" else "" if verdict.proven else "bad"
    reason = _new_in(verdict)
    said = f": {reason}" if reason else ""
    yield f"  {verdict.verdict.value}{time}{said}", style
    for warning in verdict.warnings:
        yield f"  warning: {warning}", "weak"


@lines_of.register
def _(event: Decided) -> Iterator[tuple[str, str]]:
    reason = f": {event.reason}" if event.reason else ""
    style = "good" if event.choice == "approve" else "weak"
    yield f"  {event.choice} by {event.by}{reason}", style


@lines_of.register
def _(event: BestChanged) -> Iterator[tuple[str, str]]:
    if event.ratio is None or event.time_us is None:
        yield f"best so far {event.node}: kept by hand, not timed", "good"
        return
    time = f"{event.time_us:.1f} us {event.time_kind}"
    yield f"best so far {event.node}: {event.ratio:.2f}x the original, {time}", "good"


@lines_of.register
def _(event: SourceChanged) -> Iterator[tuple[str, str]]:
    yield f"{event.file} changed: the plan can be replayed on the new source", "strong"


@lines_of.register
def _(event: RunPaused) -> Iterator[tuple[str, str]]:
    yield "paused" if event.paused else "going on", "weak"


@lines_of.register
def _(event: Notice) -> Iterator[tuple[str, str]]:
    yield f"{event.level}: {event.text}", "weak" if event.level == "info" else "bad"


@lines_of.register
def _(event: Exported) -> Iterator[tuple[str, str]]:
    yield f"exported to {event.folder}: {', '.join(event.files)}", "good"


@lines_of.register
def _(event: SessionFinished) -> Iterator[tuple[str, str]]:
    yield f"finished ({event.stopped_by}) after {_count(len(event.steps), 'step')}", "strong"
    if event.stopped_by != "error":
        yield best_text(event.best), "" if event.best.is_original else "good"


def time_text(measurement: Measurement) -> str:
    """ "201.4 us measured, 1.18x [1.16, 1.20] the original"."""
    against = [
        f"{ratio_text(ratio, measurement.kind != 'estimated')} against {name}"
        for name, ratio in measurement.against.items()
    ]
    return ", ".join([f"{measurement.time_us:.1f} us {measurement.kind}", *against])


def ratio_text(ratio: Ratio, measured: bool) -> str:
    """ "1.18x [1.16, 1.20]"; without the interval where it is estimated."""
    interval = f" [{ratio.low:.2f}, {ratio.high:.2f}]" if measured else ""
    return f"{ratio.value:.2f}x{interval}"


def usage_text(usage: Usage) -> str:
    """ "2,310 tokens in (2,048 cached), 812 out (600 thinking)"; counted ones are "about"."""
    about = "about " if usage.estimated else ""
    cached = f" ({usage.cached:,} cached)" if usage.cached else ""
    thinking = f" ({usage.reasoning:,} thinking)" if usage.reasoning else ""
    return f"{about}{usage.prompt:,} tokens in{cached}, {usage.completion:,} out{thinking}"


def budget_text(budget: BudgetChanged) -> str:
    """ "3,122 of 50,000 tokens, $0.01 of $1, 42 s"; a price that is unknown is said to be."""
    limit = f" of {budget.limit_tokens:,}" if budget.limit_tokens else ""
    parts = [f"{budget.tokens:,}{limit} tokens"]
    if budget.cost_usd is None:
        parts.append("price unknown")
    elif budget.cost_usd or budget.limit_usd:
        limit = f" of ${budget.limit_usd:g}" if budget.limit_usd else ""
        parts.append(f"${budget.cost_usd:.4f}{limit}")
    limit = f" of {budget.limit_seconds:g}" if budget.limit_seconds else ""
    return ", ".join([*parts, f"{budget.seconds:.0f}{limit} s"])


def _sample(sample: int) -> str:
    return f", sample {sample + 1}" if sample else ""


def _new_in(verdict: Verdict) -> str:
    """The verdict's reason without what the lines of its gates have said already."""
    values = next((gate for gate in verdict.gates if gate.gate is Gate.VALUES), None)
    if not verdict.proven or values is None or not values.sentence:
        return verdict.reason
    reason = verdict.reason.removeprefix(values.sentence).removeprefix("; ")
    return "" if reason == "its time is estimated" else reason


def best_text(best: BestSummary) -> str:
    """The answer of a session in one line."""
    if best.is_original:
        return f"the answer is the original. {best.reason}".strip()
    time = f"{best.time_us:.1f} us {best.time_kind}" if best.time_us is not None else "not timed"
    ratio = f"{best.ratio_to_original:.2f}x the original, " if best.ratio_to_original else ""
    return f"best {best.node}: {ratio}{time} ({'; '.join(best.actions)})"


def _option(option: ScoredAction) -> str:
    return f"{option.action.phrase} {option.probability:.0%}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"

"""What is said to and by language models: the whole prompt, and the reply as it comes."""

from __future__ import annotations

from textual.content import Content

from mtmc_engine.core.chat import Usage
from mtmc_engine.core.events import BudgetChanged, PromptReady, ReplyFinished
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import Exchange, Place, Snapshot
from mtmc_tui.screen.render.words import Part, count_text, duration_text, packed
from mtmc_tui.screen.view import View, shown_talks

Lines = tuple[list[Content], list[int]]
"""Lines, and those of them that n and N go to."""


def prompt_lines(snapshot: Snapshot, view: View, width: int) -> Lines:
    """The prompt of the shown attempt, whole; of several samples that of the first."""
    talks = shown_talks(snapshot, view)
    prompts = [said.prompt for _, exchanges in talks[:1] for said in exchanges if said.prompt]
    if not prompts:
        return [Content.styled("Nothing was asked for this program.", "$quiet")], []
    prompt = prompts[-1]
    lines = _head(prompt, view.glyphs, width)
    if len(prompts) > 1:
        lines.append(Content.styled(f"asked {len(prompts)} times: this is the last", "$quiet"))
    heads = []
    for message in prompt.messages:
        heads.append(len(lines))
        lines.append(_rule(message.role, view.glyphs, width))
        lines += _wrapped(message.content, "", width)
    return lines, heads


def reply_lines(snapshot: Snapshot, view: View, width: int) -> Lines:
    """The replies of the shown attempt, in order; what the model says to itself is dim."""
    talks = shown_talks(snapshot, view)
    lines: list[Content] = []
    heads = []
    for place, exchanges in talks:
        for number, said in enumerate(exchanges, 1):
            if len(talks) > 1 or len(exchanges) > 1:
                name = _name(place, number, len(talks), len(exchanges))
                heads.append(len(lines))
                lines.append(_rule(name, view.glyphs, width))
            coming = snapshot.pending is not None and said is exchanges[-1]
            lines += _exchange(said, coming, view.glyphs, width)
    return lines or [Content.styled("No reply yet.", "$quiet")], heads


def meter_text(budget: BudgetChanged | None, signs: Glyphs, roomy: bool) -> str:
    """ "12.3k/50k tok $0.04/$1"; only the tokens where there is little room; "" without any."""
    if budget is None:
        return ""
    limit = f"/{count_text(budget.limit_tokens)}" if budget.limit_tokens else ""
    parts = [f"{count_text(budget.tokens)}{limit} tok"]
    if roomy and budget.cost_usd is None:
        parts.append("$?")
    elif budget.cost_usd is not None and (budget.limit_usd or (roomy and budget.cost_usd)):
        limit = f"/${budget.limit_usd:g}" if budget.limit_usd else ""
        parts.append(f"${budget.cost_usd:.2f}{limit}")
    if budget.limit_seconds:
        parts.append(f"{duration_text(budget.seconds)}/{duration_text(budget.limit_seconds)}")
    return " ".join(parts)


def _head(prompt: PromptReady, signs: Glyphs, width: int) -> list[Content]:
    facts: list[Part] = [(f"to {prompt.coder}", "bold")]
    if prompt.address:
        facts.append((f"at {prompt.address}", ""))
    facts.append((f"{signs.about}{count_text(prompt.tokens)} tokens", ""))
    facts.append((f"attempt {prompt.attempt}", ""))
    return packed(facts, f" {signs.dot} ", width)


def _exchange(said: Exchange, coming: bool, signs: Glyphs, width: int) -> list[Content]:
    lines: list[Content] = []
    for thinking, text in _runs(said):
        lines += _wrapped(text, "$quiet italic" if thinking else "", width)
    if said.reply is None and not coming:
        return [*lines, Content.styled(f"{signs.failed} no reply came", "$state-failed")]
    if said.reply is None:
        mark = "writing" if said.parts else "no word yet"
        return [*lines, Content.styled(f"{signs.running} {mark}", "$state-running")]
    good = said.reply.outcome == "code"
    style = "$state-approved" if good else "$state-failed"
    glyph = signs.kept if good else signs.failed
    words: list[Part] = [(f"{glyph} {'code' if good else said.reply.outcome}", f"bold {style}")]
    words += [(fact, "$quiet") for fact in _facts(said.reply)]
    return [*lines, Content(""), *packed(words, f" {signs.dot} ", width)]


def _wrapped(text: str, style: str, width: int) -> list[Content]:
    lines = (Content.styled(line, style) for line in text.splitlines())
    return [part for line in lines for part in (line.wrap(width) if len(line) > width else (line,))]


def _runs(said: Exchange) -> list[tuple[bool, str]]:
    """Slices of one kind joined; the whole reply where no slices came."""
    if not said.parts and said.reply is not None:
        return [(False, said.reply.text)]
    runs: list[tuple[bool, str]] = []
    for text, thinking in said.parts:
        if runs and runs[-1][0] == thinking:
            runs[-1] = (thinking, runs[-1][1] + text)
        else:
            runs.append((thinking, text))
    return runs


def _facts(reply: ReplyFinished) -> list[str]:
    facts = [f"finish {reply.finish}"] if reply.finish else []
    facts.append(f"{reply.seconds:.1f} s")
    if reply.usage is not None:
        facts += _usage(reply.usage)
    if reply.cost_usd:
        facts.append(f"${reply.cost_usd:.4f}")
    return facts


def _usage(usage: Usage) -> list[str]:
    cached = f" ({count_text(usage.cached)} cached)" if usage.cached else ""
    thinking = f" ({count_text(usage.reasoning)} thinking)" if usage.reasoning else ""
    counted = " counted here" if usage.estimated else ""
    return [
        f"{count_text(usage.prompt)} tokens in{cached}",
        f"{count_text(usage.completion)} out{thinking}{counted}",
    ]


def _name(place: Place, number: int, samples: int, exchanges: int) -> str:
    parts = [f"sample {place[2] + 1}"] if samples > 1 else []
    parts += [f"call {number}"] if exchanges > 1 else []
    return ", ".join(parts)


def _rule(name: str, signs: Glyphs, width: int) -> Content:
    before, after = signs.rule * 2, signs.rule * max(0, width - len(name) - 4)
    return Content.assemble((f"{before} ", "$faint"), (name, "bold"), (f" {after}", "$faint"))

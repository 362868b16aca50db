"""Room in a model's context: what a reply needs, and what a prompt can do without.

A prompt that is too long is shortened in this order: worked examples beyond the first, all
examples, verdicts on earlier steps, evidence. What remains is needed; if that is too long, the
model is not asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

from mtmc_engine.coder.llm.prompt import Prompt
from mtmc_engine.coder.seam import CannotImplement
from mtmc_engine.core.chat import Message
from mtmc_engine.system.chat.estimate import tokens_of_text

# A reply's prose and what a step adds to a program, in tokens.
_PROSE, _GROWTH = 250, 400
_BLOCKS = 900

Count = Callable[[tuple[Message, ...]], Awaitable[int]]


def reply_tokens(prompt: Prompt) -> int:
    """What the reply needs at least, without any thinking."""
    if not prompt.wants_whole:
        return _PROSE + _BLOCKS
    return _PROSE + _GROWTH + tokens_of_text(prompt.before)


def shorter(prompt: Prompt) -> Iterator[tuple[Prompt, str]]:
    """The prompt as it is, then ever shorter ones, each with what it leaves out, in words."""
    yield prompt, ""
    left_out: list[str] = []
    for name, change in (
        ("examples but one", {"examples": 1, "repair_examples": 0}),
        ("all examples", {"examples": 0, "repair_examples": 0}),
        ("verdicts on earlier steps", {"verdicts": ()}),
        ("evidence", {"evidence": ()}),
    ):
        changed = replace(prompt, **change)
        if changed.messages == prompt.messages:
            continue
        prompt = changed
        left_out = [name] if name == "all examples" else [*left_out, name]
        yield prompt, ", ".join(left_out)


async def fitted(prompt: Prompt, context: int | None, count: Count) -> tuple[Prompt, int, str]:
    """A prompt that leaves room for its reply, its tokens, and what it leaves out, in words.

    context: tokens of prompt and reply together; None where unknown: nothing is left out.
    Raises CannotImplement where even the shortest does not fit.
    """
    tokens = 0
    for candidate, left_out in shorter(prompt):
        tokens = await count(candidate.messages)
        if context is None or tokens + reply_tokens(candidate) <= context:
            return candidate, tokens, left_out
    raise CannotImplement(
        f"The shortest prompt has {tokens} tokens and its reply needs about "
        f"{reply_tokens(prompt)}; the model's context holds {context}: use a model with a longer "
        "context."
    )

"""Tokens of each prompt of the replayed session, and how many a server's prefix cache can spare.

`python tests/replay_session/token_table.py` prints the table. Counted with the bundled model's
tokenizer (49,152 words); larger vocabularies need fewer tokens.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "replay_server"))

from replay_server import ReplayServer

from mtmc_engine.core.chat import Message
from mtmc_engine.core.events import PromptReady, StepStarted
from mtmc_engine.core.options import RunOptions
from mtmc_engine.system.chat.llama_chat import LlamaChat
from mtmc_engine.system.model_file import bundled
from mtmc_tui.client import Engine

HERE = Path(__file__).parent


async def prompts(address: str) -> list[tuple[str, PromptReady]]:
    """All prompts of the session, each with what it asks for."""
    options = RunOptions(
        str(HERE / "gated_softmax.py"),
        yes=True,
        planner="roofline",
        coder=f"openai:replay@{address}",
        timings=str(HERE / "timings.json"),
        steps=2,
        watch=False,
    )
    found: list[tuple[str, PromptReady]] = []
    what = ""
    engine = await Engine.start(options)
    async for event in engine.events():
        if isinstance(event, StepStarted):
            repair = f", {event.repair}" if event.repair else ""
            what = f"step {event.step}, {event.action.phrase}{repair}"
        if isinstance(event, PromptReady):
            again = ", asked again" if any(name == what for name, _ in found) else ""
            found.append((what + again, event))
    await engine.wait()
    return found


def shared(messages: Sequence[Message], earlier: Sequence[Message]) -> tuple[Message, ...]:
    """The beginning that two prompts have in common, as far as a message goes on."""
    same: list[Message] = []
    for own, other in zip(messages, earlier, strict=False):
        if own.role != other.role:
            break
        same_so_far = takewhile(
            lambda pair: pair[0] == pair[1], zip(own.content, other.content, strict=False)
        )
        begins = own.content[: sum(1 for _ in same_so_far)]
        same.append(Message(own.role, begins))
        if begins != own.content:
            break
    return tuple(same)


async def table() -> str:
    with ReplayServer(HERE / "script.toml") as server:
        asked = await prompts(server.base_url)
    model = bundled()
    assert model is not None
    chat = LlamaChat(model)

    async def count(messages: Sequence[Message]) -> int:
        tokens = await chat.count(messages) if messages else 0
        assert tokens is not None
        return tokens

    lines = [
        "| prompt | tokens | begin like an earlier prompt | left to read |",
        "|---|---|---|---|",
    ]
    seen: list[PromptReady] = []
    for what, prompt in asked:
        whole = await count(prompt.messages)
        cached = max([await count(shared(prompt.messages, e.messages)) for e in seen], default=0)
        lines.append(f"| {what} | {whole:,} | {cached:,} | {whole - cached:,} |")
        seen.append(prompt)
    await chat.close()
    return "\n".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["MTMC_HOME"] = home
        print(asyncio.run(table()))

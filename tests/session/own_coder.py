"""A session in this process with a coder of the test's own, everything else is the real thing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mtmc_engine.__main__ import EXPORTER
from mtmc_engine.coder.builtin import BuiltinCoder
from mtmc_engine.coder.edit import edited
from mtmc_engine.coder.seam import Candidate, CoderAsk
from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.core.events import (
    AnyEvent,
    PromptReady,
    ReplyFinished,
    ReplyPart,
    decode_event,
)
from mtmc_engine.core.options import RunOptions
from mtmc_engine.session import driver
from mtmc_engine.session.driver import drive
from mtmc_engine.session.inbox import Inbox
from mtmc_engine.session.outlet import Outlet
from mtmc_engine.system.chat.meter import Meter

# What a test's coder makes of the built-in coder's source; it may raise what a coder may raise.
Write = Callable[[str, CoderAsk], str | Awaitable[str]]


@dataclass
class OwnCoder:
    """Learns from failed gates, and tells of a prompt and a reply as a language model does."""

    write: Write
    usage: Usage = field(default_factory=lambda: Usage(100, 20))
    cost_usd: float | None = 0.01
    asks: list[CoderAsk] = field(default_factory=list)
    name: str = "own"
    address: str = "http://127.0.0.1:9/v1"
    learns: bool = True
    meter: Meter | None = None

    async def implement(self, task, program, action, ask):
        self.asks.append(ask)
        place = (ask.step, ask.attempt, ask.sample)
        messages = (Message("user", action.phrase),)
        waits = ask.send is not None
        ask.tell(PromptReady(*place, self.name, self.address, messages, 100, waits))
        if ask.send is not None:
            await ask.send()
        made = await BuiltinCoder().implement(task, program, action, CoderAsk())
        source = self.write(made.program.source, ask)
        if not isinstance(source, str):
            source = await source
        ask.tell(ReplyPart(*place, source[:20], False))
        self.meter.add(self.usage, "own", 0.1)
        ask.tell(
            ReplyFinished(*place, source, "stop", self.usage, 0.1, self.cost_usd, "code"),
        )
        return Candidate(edited(task, made.program, source), (), self.name, 0.1)

    async def close(self):
        pass


Answer = Callable[[AnyEvent], object]


async def played(monkeypatch, coder, answer: Answer | None = None, **options):
    """All events of a session, and its exit code. `answer` gives the command for an event."""

    def make_coder(spec, setting):
        coder.meter = setting.meter
        return coder

    monkeypatch.setattr(driver, "make_coder", make_coder)
    events: list[AnyEvent] = []
    inbox = Inbox(lambda text: None)

    def write(line: bytes) -> None:
        event = decode_event(line)
        events.append(event)
        command = answer(event) if answer else None
        if command is not None:
            asyncio.get_running_loop().call_soon(inbox.put, command)

    given = {"planner": "roofline", "watch": False, **options}
    if answer is None:
        inbox.receive(None)
    code = await drive(RunOptions(**given), EXPORTER, Outlet(write), inbox)
    return events, code

"""What clients asked for and was not yet done."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

import msgspec

from mtmc_engine.core.errors import NobodyToDecide
from mtmc_engine.core.events import AnyCommand, Decide, Send, Stop, decode_command
from mtmc_engine.core.lines import LONGEST_LINE

T = TypeVar("T")
NOBODY = (
    "nobody can answer: give --yes, or run it in a terminal, or send decisions on standard input"
)


class Interrupted(Exception):
    """A command ended what was running."""

    def __init__(self, command: AnyCommand) -> None:
        super().__init__()
        self.command = command


class Inbox:
    """Commands in order of arrival.

    A decision that names no node answers the next question, so that a script may send all its
    answers ahead.

    on_unreadable: called with a sentence about input that is not a command.
    exit_code: of the signal that ends the run, 0 where none came.
    """

    def __init__(self, on_unreadable: Callable[[str], None]) -> None:
        self.exit_code = 0
        self._on_unreadable = on_unreadable
        self._on_arrival: Callable[[AnyCommand], None] | None = None
        self._commands: deque[AnyCommand] = deque()
        self._changed = asyncio.Event()
        self._sends_ahead = 0
        self._unsent: list[asyncio.Future[None]] = []
        self._closed = False

    def receive(self, line: bytes | None) -> None:
        """Take one line of input; None says that no more will come."""
        if line is None:
            self._closed = True
            self._release(NobodyToDecide(f"A prompt waits to be read and {NOBODY}."))
        elif len(line) > LONGEST_LINE:
            bound = LONGEST_LINE >> 20
            self._on_unreadable(f"A line of input is longer than {bound} MB: it was passed over.")
        elif line.strip():
            try:
                self.put(decode_command(line))
            except msgspec.MsgspecError as error:
                self._on_unreadable(f"A line of input is not a command: {error}.")
        self._changed.set()

    def put(self, command: AnyCommand) -> None:
        """Take one command."""
        if isinstance(command, Send):
            self._release()
            return
        self._commands.append(command)
        self._changed.set()
        if self._on_arrival is not None:
            self._on_arrival(command)

    def listen(self, on_arrival: Callable[[AnyCommand], None]) -> None:
        """Call `on_arrival` with each command as it comes, and with those that wait already."""
        self._on_arrival = on_arrival
        for command in tuple(self._commands):
            on_arrival(command)

    async def sent(self) -> None:
        """Waits until the client sends the prompts that wait; one that was sent ahead counts.

        Raises NobodyToDecide where nobody can do so any more.
        """
        if self._sends_ahead:
            self._sends_ahead -= 1
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unsent.append(waiting)
        if self._closed:
            self._release(NobodyToDecide(f"A prompt waits to be read and {NOBODY}."))
        await waiting

    def _release(self, error: NobodyToDecide | None = None) -> None:
        waiting = [one for one in self._unsent if not one.done()]
        self._unsent.clear()
        if not waiting and error is None:
            self._sends_ahead += 1
        for one in waiting:
            if error is None:
                one.set_result(None)
            else:
                one.set_exception(error)

    def put_back(self, command: AnyCommand) -> None:
        """Leave a command to whoever asks next."""
        self._commands.appendleft(command)

    async def next(self) -> AnyCommand:
        """The oldest command. Raises NobodyToDecide where none is left and none can come."""
        while not self._commands:
            if self._closed:
                raise NobodyToDecide(f"A decision is due and {NOBODY}.")
            await self._change()
        return self._commands.popleft()

    def next_request(self) -> AnyCommand | None:
        """The oldest command, if it is not a decision: those wait for their question."""
        if self._commands and not isinstance(self._commands[0], Decide):
            return self._commands.popleft()
        return None

    @property
    def closed(self) -> bool:
        """Whether no further command can come."""
        return self._closed and not self._commands

    async def unless_interrupted(self, work: Awaitable[T], about: Collection[str] = ()) -> T:
        """The result of `work`. Stop ends it, and so does a decision to skip or stop.

        about: the nodes that such a decision may name, "" included; none: only Stop ends it.
        Raises Interrupted once the work is cancelled and its processes have ended.
        """
        working = asyncio.ensure_future(work)
        listening = asyncio.ensure_future(self._interruption(about))
        try:
            await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise Interrupted(self._take(listening.result()))
        finally:
            for task in (working, listening):
                task.cancel()
            await asyncio.gather(working, listening, return_exceptions=True)

    async def _interruption(self, about: Collection[str]) -> AnyCommand:
        """Waits for a command that ends the work; it stays in the queue.

        Of decisions only the first is meant for what is going on.
        """
        while True:
            first = next((c for c in self._commands if isinstance(c, Decide)), None)
            for command in self._commands:
                if isinstance(command, Stop) or (command is first and _ends_step(command, about)):
                    return command
            await self._change()

    def _take(self, command: AnyCommand) -> AnyCommand:
        self._commands.remove(command)
        return command

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


def _ends_step(command: AnyCommand, about: Collection[str]) -> bool:
    ends = isinstance(command, Decide) and command.choice in ("skip", "stop")
    return ends and isinstance(command, Decide) and command.node in about

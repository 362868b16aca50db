"""A child process that speaks JSON lines: one request, one response with the same id.

For hosts of native libraries that must not live in the engine, such as llama.cpp.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec

from mtmc_engine.core.errors import WorkerDied
from mtmc_engine.system.processes import send_signal

_LINE_BYTES = 1 << 28
_CLOSE_S = 0.2  # native code that computes does not read its input; it has nothing to save


@dataclass(frozen=True)
class _Pending:
    """A request without its answer."""

    on_part: Callable[[Any], None] | None
    answer: asyncio.Future[dict[str, Any]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def take(self, part: Any) -> None:
        """Hand a part on; where that fails, so does the request."""
        if self.on_part is None or self.answer.done():
            return
        try:
            self.on_part(part)
        except Exception as error:
            self.answer.set_exception(error)


class JsonChild:
    """One child process. Requests may overlap; the child answers them in any order.

    name: what it is to a user, for errors: "planner host".
    The child reads {"id": n, …} lines on stdin and writes {"id": n, …} lines on stdout; it ends
    when stdin closes. Lines on stdout that are no such object are ignored. Before its answer to a
    streamed request it may write {"id": n, "part": …}; on {"cancel": n} it ends that request early,
    and answers it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._process: asyncio.subprocess.Process | None = None
        self._stderr: IO[bytes] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._pending: dict[int, _Pending] = {}

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start the process, in its own session, with exactly the environment `env`."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self._process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._stderr,
            env=dict(env),
            limit=_LINE_BYTES,
            start_new_session=True,
        )
        self._reader = asyncio.create_task(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while text := await process.stdout.readline():
            with suppress(msgspec.MsgspecError):
                self._receive(msgspec.json.decode(text, type=dict[str, Any]))
        await process.wait()
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(self._death())
        self._pending.clear()

    def _receive(self, response: dict[str, Any]) -> None:
        number = response.pop("id", 0)
        pending = self._pending.get(number)
        if pending is None:
            return
        if "part" in response:
            pending.take(response["part"])
        elif not pending.answer.done():
            pending.answer.set_result(response)

    def _death(self) -> WorkerDied:
        code = self._process.returncode if self._process else None
        words = self.stderr_tail(2048).strip().splitlines()
        last = f" Its last words: {words[-1]}" if words else ""
        return WorkerDied(f"The {self.name} ended unexpectedly (exit code {code}).{last}")

    async def request(
        self,
        message: dict[str, Any],
        timeout_s: float | None = None,
        on_part: Callable[[Any], None] | None = None,
        stop_s: float = 5.0,
    ) -> dict[str, Any]:
        """Send `message` and await its response, without the id.

        on_part: takes what the child streams before. A streamed request whose task is cancelled
        is ended in the child, which is killed where that takes longer than `stop_s`.
        Raises WorkerDied when the child ends before it answers, and TimeoutError after
        `timeout_s`; the child is then killed, since native code cannot be interrupted.
        """
        if not self.alive:
            raise self._death()
        number = next(self._ids)
        self._pending[number] = pending = _Pending(on_part)
        try:
            await self._send({**message, "id": number})
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(pending.answer)
        except TimeoutError:
            await self.kill()
            raise
        except asyncio.CancelledError:
            if on_part is not None:
                await self._end(number, pending, stop_s)
            raise
        finally:
            self._pending.pop(number, None)
            if pending.answer.done():
                pending.answer.exception()  # it may have come after nobody waited for it

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # its death reaches those who wait
            self._process.stdin.write(msgspec.json.encode(message) + b"\n")
            await self._process.stdin.drain()

    async def _end(self, number: int, pending: _Pending, stop_s: float) -> None:
        """Let the child end a request; kill it where it does not."""
        try:
            async with asyncio.timeout(stop_s):
                await self._send({"cancel": number})
                await asyncio.wait({pending.answer})
        except TimeoutError:
            await self.kill()

    def stderr_tail(self, limit_bytes: int = 8192) -> str:
        """The end of what the child wrote to stderr."""
        if self._stderr is None:
            return ""
        size = os.fstat(self._stderr.fileno()).st_size
        kept = os.pread(self._stderr.fileno(), limit_bytes, max(0, size - limit_bytes))
        return kept.decode(errors="replace")

    async def kill(self) -> None:
        """End the child at once; requests that wait raise WorkerDied."""
        if self.alive:
            assert self._process is not None
            send_signal(self._process, signal.SIGKILL)
        if self._reader is not None:
            await self._reader

    async def close(self) -> None:
        """Close the child's stdin and await its end; kill it if it does not end soon."""
        if self._process is None or self._reader is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await asyncio.shield(self._reader)
        await self.kill()

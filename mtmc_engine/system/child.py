"""A child process that speaks JSON lines: one request, one response with the same id.

For hosts of native libraries that must not live in the engine, such as llama.cpp.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

import msgspec

from mtmc_engine.core.errors import WorkerDied

_LINE_BYTES = 1 << 28
_CLOSE_S = 5


class JsonChild:
    """One child process. Requests may overlap; the child answers them in any order.

    name: what it is to a user, for errors: "planner host".
    The child reads {"id": n, …} lines on stdin and writes {"id": n, …} lines on stdout; it ends
    when stdin closes. Lines on stdout that are no such object are ignored.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._process: asyncio.subprocess.Process | None = None
        self._stderr: IO[bytes] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

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
                response = msgspec.json.decode(text, type=dict[str, Any])
                waiting = self._waiting.pop(response.pop("id", 0), None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(response)
        await process.wait()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self._death())
        self._waiting.clear()

    def _death(self) -> WorkerDied:
        code = self._process.returncode if self._process else None
        words = self.stderr_tail(2048).strip().splitlines()
        last = f" Its last words: {words[-1]}" if words else ""
        return WorkerDied(f"The {self.name} ended unexpectedly (exit code {code}).{last}")

    async def request(
        self, message: dict[str, Any], timeout_s: float | None = None
    ) -> dict[str, Any]:
        """Send `message` and await its response, without the id.

        Raises WorkerDied when the child ends before it answers, and TimeoutError after
        `timeout_s`; the child is then killed, since native code cannot be interrupted.
        """
        if not self.alive:
            raise self._death()
        assert self._process is not None
        assert self._process.stdin is not None
        number = next(self._ids)
        waiting: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        with suppress(ConnectionError):  # its death reaches `waiting`
            self._process.stdin.write(msgspec.json.encode({**message, "id": number}) + b"\n")
            await self._process.stdin.drain()
        try:
            async with asyncio.timeout(timeout_s):
                return await waiting
        except TimeoutError:
            await self.kill()
            raise
        finally:
            self._waiting.pop(number, None)

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
            self._process.kill()
        if self._reader is not None:
            await self._reader

    async def close(self) -> None:
        """Close the child's stdin and await its end; kill it if it does not end in 5 s."""
        if self._process is None or self._reader is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._reader), _CLOSE_S)
        await self.kill()

"""Warm processes of contestants, kept from one contest of a session to the next.

torch.compile takes half a minute to get warm, a process on a GPU a second: the reference, its
compiled form and the step before stay as they are; only a candidate is new. A stand lives as a
job of the session's device parent, and ends with it at the latest.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import shutil
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from mtmc_engine.core.errors import MtmcError
from mtmc_engine.proof import explain
from mtmc_engine.proof.timing.referee import Place
from mtmc_engine.proof.timing.timer import COPY, Contest, Entrant
from mtmc_engine.proof.work_names import STAND
from mtmc_engine.system.jobs import Confinement, Ending, JobResult, Limits, WarmParent, Workshop
from mtmc_engine.system.scratch import scratch_of

# Stands that nobody uses at the moment; the one that was used longest ago ends first.
_MOST_IDLE = 5
_LIFE_S = 7 * 24 * 3600.0


class NoStand(Exception):
    """A contestant could not get ready; the message says why, its class first where it has one."""


@dataclass
class Stand:
    """A contestant's process. place: where it listens, once ready."""

    key: str
    folder: Path
    place: Place
    work: asyncio.Task[JobResult]
    ready: asyncio.Future[str] = field(repr=False)

    @property
    def alive(self) -> bool:
        return not self.work.done()


class TimingPool:
    """The stands of one session."""

    def __init__(self, parent: WarmParent) -> None:
        self.parent = parent
        self._idle: OrderedDict[str, Stand] = OrderedDict()
        self._busy: list[Stand] = []

    @property
    def size(self) -> int:
        """How many processes are alive."""
        return sum(stand.alive for stand in (*self._idle.values(), *self._busy))

    async def take(self, entrant: Entrant, contest: Contest, limits: Limits, fresh: bool) -> Stand:
        """A stand that is ready, warm where one is left and `fresh` is not asked for.

        Raises NoStand where its program cannot be built, MtmcError where the reference fails.
        """
        key = _key(entrant, contest)
        stand = None if fresh else self._idle.pop(key, None)
        if stand is None or not stand.alive:
            stand = self._start(key, entrant, contest, limits)
        self._busy.append(stand)
        try:
            token = await _ready(stand, contest.compile_seconds * 2)
        except BaseException:
            await self.drop(stand)
            raise
        place = stand.place
        stand.place = Place(entrant.name, place.socket, place.nonce, token)
        return stand

    def start_early(self, contest: Contest, limits: Limits) -> None:
        """Starts what a contest will need and is not warm, so that it is ready by then."""
        known = {*self._idle, *(stand.key for stand in self._busy)}
        for entrant in contest.entrants:
            key = _key(entrant, contest)
            if key not in known:
                known.add(key)
                self._idle[key] = self._start(key, entrant, contest, limits)

    async def discard(self, entrant: Entrant, contest: Contest) -> None:
        """Ends the idle stand of a contestant that will not be timed."""
        stand = self._idle.pop(_key(entrant, contest), None)
        if stand is not None:
            await _end(stand)

    async def give_back(self, stand: Stand) -> None:
        """Keeps a stand for a later contest."""
        if stand in self._busy:
            self._busy.remove(stand)
        known = self._idle.pop(stand.key, None)
        if known is not None and known is not stand:
            await _end(known)
        if not stand.alive:
            await _end(stand)
            return
        self._idle[stand.key] = stand
        while len(self._idle) > _MOST_IDLE:
            _, oldest = self._idle.popitem(last=False)
            await _end(oldest)

    async def drop(self, stand: Stand) -> None:
        """Ends a stand."""
        if stand in self._busy:
            self._busy.remove(stand)
        await _end(stand)

    async def close(self) -> None:
        """Ends all of them."""
        stands = [*self._idle.values(), *self._busy]
        self._idle.clear()
        self._busy.clear()
        await asyncio.gather(*(_end(stand) for stand in stands))

    @cached_property
    def _place(self) -> Path:
        """The folder of the stands' folders, of which no stand of a source sees another's."""
        return scratch_of(self)

    def _start(self, key: str, entrant: Entrant, contest: Contest, limits: Limits) -> Stand:
        folder = Path(tempfile.mkdtemp(dir=self._place))
        place = Place(entrant.name, str(folder / "s"), secrets.token_hex(16))
        arguments = msgspec.to_builtins(
            {
                "entrant": entrant,
                "build": contest.build,
                "sets": contest.sets,
                "l2_bytes": contest.l2_bytes,
                "lock": contest.lock,
                "compile_seconds": contest.compile_seconds,
                "socket": place.socket,
                "nonce": place.nonce,
            }
        )
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def heard(value: Any) -> None:
            if not ready.done():
                ready.set_result(str(value.get("token", "")))

        cache = Path(entrant.cache) if entrant.cache else None
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)
        life = Limits(_LIFE_S, limits.memory_mb, limits.output_kb)
        confinement = None
        if entrant.kind == "source":
            writable = [str(folder), *([str(cache)] if cache else [])]
            writable += [contest.folder] if contest.folder else []
            hidden = (str(folder.parent), *contest.hidden)
            confinement = Confinement(tuple(writable), hidden)
        job = self.parent.run(STAND, arguments, life, heard, cache=cache, confinement=confinement)
        work = asyncio.create_task(job)
        work.add_done_callback(_seen)
        return Stand(key, folder, place, work, ready)


# By workshop, so that they are found again from one proof to the next.
_pools: WeakKeyDictionary[Workshop, TimingPool] = WeakKeyDictionary()


def pool_of(workshop: Workshop) -> TimingPool:
    """The pool of a session."""
    if workshop not in _pools:
        _pools[workshop] = TimingPool(workshop.device)
    return _pools[workshop]


def _key(entrant: Entrant, contest: Contest) -> str:
    """What two stands must share to be the same: code, build, input sets, what they see."""
    copy = entrant.name == COPY
    source = Path(entrant.code.path).read_bytes() if entrant.code is not None else b""
    facts = [entrant.kind, copy, contest.build, contest.sets, contest.lock, contest.hidden]
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted") + source).hexdigest()


async def _ready(stand: Stand, patience_s: float) -> str:
    both: set[asyncio.Future[Any]] = {stand.ready, stand.work}
    await asyncio.wait(both, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
    if stand.ready.done():
        return stand.ready.result()
    if not stand.work.done():
        raise NoStand(f"TIMEOUT: it did not get ready within {patience_s:.0f} s")
    raise NoStand(how_it_ended(stand.work.result()))


def how_it_ended(result: JobResult) -> str:
    """Why a stand is gone: what its program raised, or how its process ended, class first.

    Raises the reference's own MtmcError.
    """
    if result.ending is Ending.DONE:
        return str((result.value or {}).get("failed", "its process ended"))
    if result.failure:
        result.unwrap()
    verdict, sentence = explain.ending(result, "being timed")
    return f"{verdict}: {sentence}"


async def _end(stand: Stand) -> None:
    stand.work.cancel()
    await asyncio.gather(stand.work, return_exceptions=True)
    shutil.rmtree(stand.folder, ignore_errors=True)


def _seen(work: asyncio.Task[JobResult]) -> None:
    """Takes note of an exception, which whoever waits for the stand hears of."""
    if not work.cancelled() and isinstance(work.exception(), MtmcError):
        return

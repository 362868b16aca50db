"""The timer for a GPU in this machine: every program in a process of its own, and a referee."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.core.errors import MtmcError
from mtmc_engine.proof import explain
from mtmc_engine.proof.subject import Bounds
from mtmc_engine.proof.timing.lock import lock_file
from mtmc_engine.proof.timing.pool import NoStand, Stand, how_it_ended, pool_of
from mtmc_engine.proof.timing.timer import CANDIDATE, COMPILED, Contest, Timed
from mtmc_engine.proof.work_names import REFEREE
from mtmc_engine.system.jobs import Ending, Limits, Workshop

__all__ = ["GpuTimer", "lock_file"]

# A process that has just lost its connection is given so long to say how it ended.
_LAST_WORDS_S = 3.0


class GpuTimer:
    """Times with the session's pool of warm processes."""

    def __init__(self, workshop: Workshop, bounds: Bounds) -> None:
        self.workshop, self.bounds = workshop, bounds
        self.pool = pool_of(workshop)

    async def time(self, contest: Contest, tell: Callable[[int, int, str], None]) -> Timed:
        """Raises MtmcError where the reference itself fails."""
        tell(0, 1, "starting the contestants")
        await self.workshop.device.start()  # no contestant's patience is spent on that
        limits = stand_limits(self.bounds)
        takes = (
            self.pool.take(entrant, contest, limits, contest.fresh and entrant.kind != COMPILED)
            for entrant in contest.entrants
        )
        found = await asyncio.gather(*takes, return_exceptions=True)
        stands: dict[str, Stand] = {}
        missing: dict[str, str] = {}
        trouble: BaseException | None = None
        for entrant, one in zip(contest.entrants, found, strict=True):
            if isinstance(one, Stand):
                stands[entrant.name] = one
            elif isinstance(one, NoStand):
                missing[entrant.name] = str(one)
            else:
                trouble = trouble or one
        timed: Timed | None = None
        try:
            if trouble is not None:
                raise trouble
            if CANDIDATE in missing:
                return Timed((), missing, missing[CANDIDATE])
            timed = await self._refereed(contest, stands, missing, tell)
            return timed
        finally:
            await self._put_away(stands, timed, contest)

    async def _refereed(
        self,
        contest: Contest,
        stands: dict[str, Stand],
        missing: dict[str, str],
        tell: Callable[[int, int, str], None],
    ) -> Timed:
        def heard(value: Any) -> None:
            tell(value["done"], value["total"], value["doing"])

        arguments = msgspec.to_builtins(
            {
                "contest": contest,
                "places": [stand.place for stand in stands.values()],
                "missing": missing,
                "ours": self.pool.size,
            }
        )
        limits = Limits(wall_s=self.bounds.timing_s, memory_mb=self.bounds.memory_mb)
        result = await self.workshop.device.run(REFEREE, arguments, limits, heard)
        if result.ending is not Ending.DONE:
            verdict, sentence = explain.ending(result, "being timed")
            return Timed((), missing, failed=f"{verdict}: {sentence}")
        timed = msgspec.convert(result.value, Timed)
        if timed.failed:
            why = await _last_words(stands[CANDIDATE])
            return msgspec.structs.replace(timed, failed=why or timed.failed)
        return timed

    async def _put_away(
        self, stands: dict[str, Stand], timed: Timed | None, contest: Contest
    ) -> None:
        """Warm processes go back to the pool, those that failed end."""
        for name, stand in stands.items():
            failed = timed is not None and name in timed.missing
            if name == CANDIDATE:
                bad = timed is None or bool(timed.failed) or bool(timed.rechecked.verdict)
                failed = failed or bad or contest.fresh
            if failed:
                await self.pool.drop(stand)
            else:
                await self.pool.give_back(stand)


async def _last_words(stand: Stand) -> str:
    """How the candidate's process ended, "" where it still lives."""
    await asyncio.wait({stand.work}, timeout=_LAST_WORDS_S)
    if not stand.work.done() or stand.work.cancelled():
        return ""
    try:
        return how_it_ended(stand.work.result())
    except MtmcError as error:
        return str(error)


def stand_limits(bounds: Bounds) -> Limits:
    """Of a contestant's process; how long it lives is the pool's affair."""
    return Limits(memory_mb=4 * bounds.memory_mb)


def folder_for(own: Path) -> str:
    """Where outputs of timed calls are put, made anew."""
    folder = own / "timed"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    return str(folder)

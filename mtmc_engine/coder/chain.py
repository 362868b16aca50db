"""Several coders in turn: the next is asked where one cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mtmc_engine.coder.seam import Candidate, CannotImplement, Coder, CoderAsk, CoderUnavailable
from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task

# A coder that could not be reached so often in a row is not asked any more.
_GIVEN_UP_AFTER = 2


class ChainCoder:
    """Coders in the order in which they are asked.

    With feedback, the coder whose candidate failed is asked first, if it learns; else those
    after it.
    """

    def __init__(self, coders: Sequence[Coder]) -> None:
        self._coders = tuple(coders)
        self._unreached = dict.fromkeys(range(len(self._coders)), 0)

    @property
    def name(self) -> str:
        return ",".join(coder.name for coder in self._coders)

    @property
    def address(self) -> str:
        return ", ".join(coder.address for coder in self._coders if coder.address)

    @property
    def learns(self) -> bool:
        return any(coder.learns for coder in self._coders)

    async def implement(
        self, task: Task, program: Program, action: Action, ask: CoderAsk
    ) -> Candidate:
        """The first candidate.

        Raises CannotImplement with the reasons of all who were asked, CoderUnavailable where
        there are others and none of them could be reached.
        """
        failures: list[CannotImplement] = []
        reasons: list[str] = []
        for at in self._order(ask):
            coder = self._coders[at]
            try:
                made = await coder.implement(task, program, action, ask)
            except CannotImplement as failure:
                failures.append(failure)
                reasons.append(f"{coder.name}: {failure}")
                self._count(at, isinstance(failure, CoderUnavailable))
            else:
                self._count(at, unreached=False)
                return replace(made, notes=(*reasons, *made.notes))
        sentence = " ".join(reasons) or f"No coder has another answer for {action.phrase!r}."
        last = failures[-1] if failures else None
        gone = [isinstance(failure, CoderUnavailable) for failure in failures]
        if all(gone) and (gone or not self._reachable()):
            raise CoderUnavailable(sentence) from last
        raise CannotImplement(sentence) from last

    async def close(self) -> None:
        for coder in self._coders:
            await coder.close()

    def _order(self, ask: CoderAsk) -> list[int]:
        """Places of the coders to ask."""
        places = self._reachable()
        if ask.feedback is None:
            return places
        failed = [at for at in places if self._coders[at].name == ask.feedback.coder]
        after = failed[-1] if failed else -1
        again = [at for at in failed if self._coders[at].learns]
        return again + [at for at in places if at > after and at not in again]

    def _reachable(self) -> list[int]:
        """Places of those that were not given up; of all where every one was: a user asks again."""
        near = [at for at, times in self._unreached.items() if times < _GIVEN_UP_AFTER]
        return near or list(self._unreached)

    def _count(self, at: int, unreached: bool) -> None:
        self._unreached[at] = self._unreached[at] + 1 if unreached else 0

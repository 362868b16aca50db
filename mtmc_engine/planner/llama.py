"""Macro Thinking by a language model: the probability of each legal phrase after the state text.

The action's probability is the product of its tokens' probabilities, normalised and taken over
the legal actions (TWOSOME, arXiv 2401.14151). The model lives in a host process.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.core.errors import UsageError, WorkerDied
from mtmc_engine.plan.state import State
from mtmc_engine.plan.state_text import StateText, state_text
from mtmc_engine.planner.reading import Normalise, Reading
from mtmc_engine.planner.seam import ranked, softmax
from mtmc_engine.system.child import JsonChild
from mtmc_engine.system.environment import without_secrets
from mtmc_engine.system.host_process import host_command

# A 135M model answers in 2 s; a 7B one on a laptop may need a minute.
ANSWER_S = 300.0
_MOST_THREADS = 4
# Threads that wait give their core away. Spinning is a tenth faster on an idle machine and five
# times slower beside two busy processes on two cores (2.5 against 12 s for a decision, measured).
_PATIENT = {"OMP_WAIT_POLICY": "passive"}


class LlamaPlanner:
    """One model file in a host process, started at the first need and once more if it dies.

    model: a checked GGUF file. threads: for decoding; 0 = the cores of this process, at most 4.
    Methods raise WorkerDied where the host died twice, UsageError where it refuses the model.
    """

    def __init__(self, model: Path, normalise: Normalise = "word", threads: int = 0) -> None:
        self.name = f"llama:{model.name}"
        self.reading: Reading | None = None  # of the latest proposal
        self._model = model
        self._normalise = normalise
        self._threads = threads or min(_MOST_THREADS, len(os.sched_getaffinity(0)))
        self._host: JsonChild | None = None
        self._starts_left = 2
        self._one_at_a_time = asyncio.Lock()

    async def prepare(self, state: State) -> None:
        """Load the model and read the stable prefix, so that the first decision is as fast."""
        await self._ask({"op": "prime", "prefix": state_text(state).prefix})

    async def propose(self, state: State, legal: Sequence[Action]) -> tuple[ScoredAction, ...]:
        self.reading = await self.read(state_text(state), [action.phrase for action in legal])
        scores = [score.normalised(self._normalise) for score in self.reading.scores]
        probabilities = softmax(scores)
        return ranked(legal, probabilities, {"llama": probabilities})

    async def read(self, text: StateText, phrases: Sequence[str]) -> Reading:
        """Score `phrases`, at least one, as continuations of `text`."""
        request = {"op": "score", "prefix": text.prefix, "changing": text.changing}
        return msgspec.convert(await self._ask({**request, "phrases": phrases}), Reading)

    async def close(self) -> None:
        if self._host is not None:
            await self._host.close()

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        async with self._one_at_a_time:
            while True:
                try:
                    host = await self._living_host()
                    return _checked(await host.request(request, ANSWER_S))
                except TimeoutError:
                    raise WorkerDied("The planner host did not answer in time.") from None
                except WorkerDied:
                    if self._starts_left == 0:
                        raise

    async def _living_host(self) -> JsonChild:
        if self._host is not None and self._host.alive:
            return self._host
        if self._starts_left == 0:
            raise WorkerDied("The planner host ended twice.")
        self._starts_left -= 1
        self._host = host = JsonChild("planner host")
        await host.start(
            host_command("mtmc_engine.planner.host.serve"),
            _PATIENT | without_secrets(os.environ),
        )
        load = {"op": "load", "path": str(self._model), "threads": self._threads}
        reply = await host.request(load, ANSWER_S)
        if "error" in reply:
            await host.close()
        _checked(reply)
        return host


def _checked(reply: dict[str, Any]) -> dict[str, Any]:
    if "error" in reply:
        raise UsageError(reply["error"])
    return reply

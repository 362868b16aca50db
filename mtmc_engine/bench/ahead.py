"""Compiling ahead: candidates that a walk will most likely ask for, before it does.

A compiled kernel lies in the folder of its source, where the proof of the same source finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mtmc_engine.bench.setting import Bench
from mtmc_engine.coder.builtin import BuiltinCoder
from mtmc_engine.coder.seam import CannotImplement, CoderAsk
from mtmc_engine.core.action import ScoredAction
from mtmc_engine.core.errors import MtmcError
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.plan.situation import state_at
from mtmc_engine.plan.tree import ROOT, PlanTree
from mtmc_engine.planner.roofline import RooflinePlanner
from mtmc_engine.proof.gates.compiling import compile_candidate
from mtmc_engine.proof.gates.proof import Proof
from mtmc_engine.proof.prove import Subject
from mtmc_engine.proof.wire import CandidateCode
from mtmc_engine.schedule.legal import legal_actions
from mtmc_engine.schedule.original import original_program
from mtmc_engine.session.baseline import estimate
from mtmc_engine.system.jobs import Workshop

# Of a plan's steps, so many are compiled ahead: the best is proven at once, others may follow.
_WIDTH = 3
# Steps that are taken for granted while a task is opened.
_DEPTH = 4


class Ahead:
    """Compiles candidates of one task in the background."""

    def __init__(self, bench: Bench, task: Task, folder: Path, workshop: Workshop) -> None:
        self._bench, self._task, self._folder, self._workshop = bench, task, folder, workshop
        self._coder = BuiltinCoder()
        self._begun: set[str] = set()
        self._running: set[asyncio.Task[None]] = set()

    async def foresee(self) -> None:
        """Follow the planner's first choices by estimates, and compile what is met; waits for it.

        Every step is believed in, since most of a good plan is kept.
        """
        program = original_program(self._task)
        planner = RooflinePlanner()
        for step in range(1, _DEPTH + 1):
            tree = PlanTree(program, estimate(self._task, program))
            state = state_at(self._task, tree, ROOT, step=step, max_steps=8)
            legal = legal_actions(self._task, program.schedule, self._task.device)
            options = await planner.propose(state, legal)
            if options[0].action.kind == "stop":
                break
            self.expect(program, options)
            try:
                action = options[0].action
                candidate = await self._coder.implement(self._task, program, action, CoderAsk())
            except CannotImplement:
                break
            program = candidate.program
        await asyncio.gather(*self._running, return_exceptions=True)

    def expect(self, program: Program, options: Sequence[ScoredAction], skip: int = 0) -> None:
        """Begin to compile the best steps of a plan, `skip` of them left out."""
        likely = [option for option in options if option.action.kind != "stop"]
        for option in likely[skip:_WIDTH]:
            work = asyncio.create_task(self._compiled(program, option))
            self._running.add(work)
            work.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """End what still compiles."""
        for work in self._running:
            work.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _compiled(self, program: Program, option: ScoredAction) -> None:
        """What is wrong with a candidate its proof will find and tell."""
        async with self._bench.slots:
            with suppress(CannotImplement, MtmcError):
                made = await self._coder.implement(self._task, program, option.action, CoderAsk())
                source = made.program.source
                if source in self._begun:
                    return
                self._begun.add(source)
                await self._compile(source, option.action.phrase)

    async def _compile(self, source: str, name: str) -> None:
        subject = Subject(
            self._task,
            source,
            name,
            str(self._folder),
            seed=self._bench.options.seed,
            bounds=self._bench.bounds,
        )
        path = subject.path_of(source)
        if path.exists():  # its proof has begun
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
        code = CandidateCode(str(path), path.stem, subject.beside)
        proof = Proof(subject, self._workshop, lambda _: None, code)
        await compile_candidate(proof, lambda _: None)

"""Judges many small candidates: warm parents, one reference for all faults of a program."""

import asyncio
import hashlib
import random
from collections import Counter
from dataclasses import dataclass, field

import msgspec
from fault_programs import (
    KINDS,
    TILE_ROWS,
    has_effect,
    random_fault,
    random_program,
    torch_source,
    triton_source,
)

from mtmc_engine.core.graph import Graph, GraphInput, Node, TensorSpec
from mtmc_engine.core.task import InputSet, Policy, Task
from mtmc_engine.core.verdict import PROVEN
from mtmc_engine.proof.gates.integrity import check_integrity
from mtmc_engine.proof.gates.proof import Proof
from mtmc_engine.proof.gates.values import launch_and_compare
from mtmc_engine.proof.subject import Subject
from mtmc_engine.proof.wire import CandidateCode, Compiled, Launch
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Workshop

# Judged at once.
_PARALLEL = 2


@dataclass
class Figures:
    """Counts by kind: with an effect and rejected, and of those without a fault, rejected.

    missed: programs whose fault has an effect and was not found.
    """

    effective: Counter = field(default_factory=Counter)
    rejected: Counter = field(default_factory=Counter)
    harmless: Counter = field(default_factory=Counter)
    right: int = 0
    accused: list = field(default_factory=list)
    missed: list = field(default_factory=list)

    def table(self) -> str:
        lines = [f"{'kind':<20} {'effective':>9} {'rejected':>9} {'share':>7} {'no effect':>9}"]
        for kind in [*KINDS, "all"]:
            counts = (self.effective, self.rejected, self.harmless)
            n, r, h = (c.total() if kind == "all" else c[kind] for c in counts)
            lines.append(f"{kind:<20} {n:>9} {r:>9} {r / n if n else 1:>7.1%} {h:>9}")
        return "\n".join([*lines, f"without a fault: {self.right}, rejected {len(self.accused)}"])

    @property
    def share(self) -> float:
        return self.rejected.total() / max(1, self.effective.total())


class Bench:
    """One workshop; each program has a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.workshop = Workshop()
        self.turns = asyncio.Semaphore(_PARALLEL)
        self.count = 0

    async def verdict(self, task, program, folder):
        """ "" where values and integrity are proven, else the verdict and its sentence."""
        source = triton_source(program)
        name = f"candidate_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
        subject = Subject(task=task, source=source, name=name, folder=str(folder))
        proof = Proof(subject, self.workshop, lambda _: None, CandidateCode("", name))
        path = subject.own_folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        proof.code = CandidateCode(str(path), name)
        block = 1 << (program.columns - 1).bit_length()
        launch = Launch(
            "rows_kernel", "", (-(-program.rows // TILE_ROWS),), {"BLOCK": block, "ROWS": TILE_ROWS}
        )
        proof.compiled = Compiled(None, launches=(launch,))
        async with self.turns:
            outcome = await launch_and_compare(proof, lambda _: None)
            if outcome.verdict is None:
                outcome = check_integrity(proof)
        accepted = outcome.verdict is None or outcome.verdict in PROVEN
        return "" if accepted else f"{outcome.verdict}: {outcome.sentence}"

    def open(self, program):
        """A task for a program, as capture makes it."""
        self.count += 1
        folder = self.folder / f"program{self.count}"
        folder.mkdir()
        text = torch_source(program)
        (folder / "operator_file.py").write_text(text)
        matrix = TensorSpec(program.shape, "float32", ("s0", "s1"))
        along = "s0" if program.down else "s1"
        vector = TensorSpec((program.columns,), "float32", (along,))
        specs = {"x": matrix, "y": matrix, "w": vector}
        given = tuple(GraphInput(name, "input", name, specs[name]) for name in program.uses)
        result = TensorSpec((program.rows,), "float32", ("s1" if program.down else "s0",))
        made = result if program.reduced else matrix
        node = Node("v", "aten.add.Tensor", ("%x",), {}, (made,))
        task = Task(
            file=str(folder / "operator_file.py"),
            digest=hashlib.sha256(text.encode()).hexdigest(),
            name="operator",
            module="operator_file",
            form="function",
            entry="operator",
            policy=Policy(),
            device=msgspec.structs.replace(card("sm_90"), present=False),
            inputs=(InputSet("own", tuple(specs[name] for name in program.uses)),),
            graph=Graph(given, (node,), "%v"),
            arguments=tuple(program.uses),
            vary=((0, 0), (0, 1)),
        )
        return task, folder

    async def judge(self, program, source: random.Random, figures: Figures, kinds=KINDS):
        """The program itself, and one fault of each kind that fits it."""
        task, folder = self.open(program)
        said = await self.verdict(task, program, folder)
        figures.right += 1
        if said:
            figures.accused.append((program, said))
        faulty = [random_fault(program, kind, source) for kind in kinds]
        chosen = [one for one in faulty if one is not None]
        effects = [has_effect(one) for one in chosen]
        found = await asyncio.gather(
            *(
                self.verdict(task, one, folder)
                for one, effect in zip(chosen, effects, strict=True)
                if effect
            )
        )
        words = iter(found)
        for one, effect in zip(chosen, effects, strict=True):
            if not effect:
                figures.harmless[one.fault.kind] += 1
                continue
            figures.effective[one.fault.kind] += 1
            if next(words):
                figures.rejected[one.fault.kind] += 1
            else:
                figures.missed.append(one)

    async def run(self, seed: int, programs: int, kinds=KINDS) -> Figures:
        """So many random programs, each with its faults."""
        source, figures = random.Random(seed), Figures()
        for _ in range(programs):
            await self.judge(random_program(source), source, figures, kinds)
        return figures

"""Contests on the CPU: the real processes and sockets, with the host's clock for the device's."""

import asyncio
import textwrap

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.core.task import Policy
from mtmc_engine.proof.subject import Bounds
from mtmc_engine.proof.timing.gpu_timer import GpuTimer, folder_for
from mtmc_engine.proof.timing.timer import CANDIDATE, COPY, EAGER, Contest, Entrant
from mtmc_engine.proof.wire import Build, CandidateCode
from mtmc_engine.system.jobs import Workshop

HEAD = """
import torch
import torch.nn as nn
"""

REFERENCE = """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.tanh(x) * self.scale

def get_inputs():
    return [torch.randn(64, 256)]

def get_init_inputs():
    return [256]
"""

HONEST = """
from operator_file import Model

class ModelNew(Model):
    @classmethod
    def from_reference(cls, model):
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, x):
        return torch.tanh(x).mul_(self.scale)
"""


class Contests:
    """Contests in one folder, of one reference."""

    def __init__(self, folder, reference=REFERENCE):
        self.folder, self.workshop = folder, Workshop()
        self.loop = asyncio.new_event_loop()
        self.timer = GpuTimer(self.workshop, Bounds())
        (folder / "operator_file.py").write_text(HEAD + reference)
        for name in ("truths", "own"):
            (folder / name).mkdir()
        for name in ("lock", "lock.gate"):
            (folder / name).touch()
        self.count = 0

    def code(self, source):
        self.count += 1
        path = self.folder / f"kernel_{self.count}.py"
        path.write_text(HEAD + textwrap.dedent(source))
        return CandidateCode(str(path), path.stem, str(self.folder), "")

    def contest(self, candidate, copy=True, **options):
        entrants = [Entrant(CANDIDATE, "source", self.code(candidate)), Entrant(EAGER, "eager")]
        if copy:
            entrants.append(Entrant(COPY, "eager"))
        given = {
            "build": Build(str(self.folder / "operator_file.py"), "Model", Policy(), 3, "cpu"),
            "entrants": tuple(entrants),
            "baseline": EAGER,
            "sets": ((TensorSpec((64, 256), "float32"),),),
            "l2_bytes": 1 << 20,
            "lock": str(self.folder / "lock"),
            "seconds": 0.2,
            "compile_seconds": 10.0,
            "folder": folder_for(self.folder / "own"),
            "hidden": (str(self.folder / "truths"),),
        }
        return Contest(**(given | options))

    def time(self, candidate, **options):
        work = self.timer.time(self.contest(candidate, **options), lambda *told: None)
        return self.loop.run_until_complete(work)

    def close(self):
        self.loop.run_until_complete(self.timer.pool.close())
        self.loop.run_until_complete(self.workshop.close())
        self.loop.close()

"""Operators that are proven in a second, and engines that are ended with the test."""

from pathlib import Path

import pytest

from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import Engine

TWO_REGIONS = '''
"""Row softmax, then a chain of pointwise operators."""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(torch.softmax(x, dim=-1) * 2.0 + 1.0)


def get_inputs():
    return [torch.randn(8, 64)]


def get_init_inputs():
    return []
'''


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data folder of its own for the engines of this test."""
    monkeypatch.setenv("MTMC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path / "home"


@pytest.fixture
def operator(tmp_path):
    path = tmp_path / "tiny.py"
    path.write_text(TWO_REGIONS)
    return path


@pytest.fixture
async def start(home, operator):
    """Starts engines on the operator; what still runs at the end of the test is killed."""
    engines = []

    async def started(**options) -> Engine:
        given = {"file": str(operator), "planner": "roofline", "watch": False, **options}
        engine = await Engine.start(RunOptions(**given))
        engines.append(engine)
        return engine

    yield started
    for engine in engines:
        if engine.process.returncode is None:
            engine.kill()
            await engine.wait()


def descendants(pid: int) -> set[int]:
    """All processes below a process."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: set[int] = set()
    stack = [pid]
    while stack:
        for child in parents.get(stack.pop(), []):
            found.add(child)
            stack.append(child)
    return found


def alive(pids: set[int]) -> set[int]:
    """Those of the processes that still run; a zombie does not."""
    running = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            running.add(pid)
    return running


@pytest.fixture
def below():
    """Processes below this one; and which of some are alive."""
    return descendants, alive

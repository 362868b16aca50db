"""Candidates that attack what judges them: each gets a verdict, leaves nothing, and the next one
is judged as ever."""

import time
from pathlib import Path

import pytest

from mtmc_engine.proof.prove import Bounds
from mtmc_engine.system.jobs import Confinement
from mtmc_engine.system.processes import descendants

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return x * 2 + 1

def get_inputs():
    return [torch.randn(300)]

def get_init_inputs():
    return []
"""

HONEST = """
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2 + 1, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            scale[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
"""

EXITS = HONEST.replace("        return out", "        import os; os._exit(0)")
BOMB = """
import os, time
for _ in range(8):
    os.fork()
time.sleep(60)
"""
PRINTS = (
    """
import os
for _ in range(1100):
    os.write(1, b"y" * (1 << 20))
"""
    + HONEST
)
CRASHES = HONEST.replace("        return out", "        import ctypes; ctypes.string_at(8)")
HOARDS = (
    """
import os
with open("hoard", "wb") as file:
    while True:
        file.write(b"1" * (1 << 20))
"""
    + HONEST
)

MEDDLES = """
import os, pathlib, subprocess, sys

def attempt(what):
    try:
        what()
    except OSError:
        return
    raise RuntimeError(f"it could {what.__name__}")

def rewrite_the_reference():
    import operator_file
    pathlib.Path(operator_file.__file__).write_text("")

def write_to_the_home_folder():
    pathlib.Path.home().joinpath("mtmc-was-here").write_text("")

def signal_another_process():
    os.kill(os.getppid() if os.getppid() > 1 else 10**6, 0)

def read_the_truth():
    for file in pathlib.Path(__file__).parents[1].rglob("*.flat"):
        if file.name.startswith("truth-") and file.read_bytes():
            return
    raise OSError("none")

def read_what_another_gave():
    for file in pathlib.Path(__file__).parents[1].rglob("another-*.flat"):
        if file.read_bytes():
            return
    raise OSError("none")

def meddle():
    for what in (rewrite_the_reference, write_to_the_home_folder, signal_another_process):
        attempt(what)
    attempt(read_the_truth)
    attempt(read_what_another_gave)

code = "import os, time\\nos.fork() and os._exit(0)\\nos.setsid()\\nos.fork() and os._exit(0)\\n"
subprocess.Popen([sys.executable, "-S", "-c", code + "time.sleep(600)"]).wait()
meddle()
""" + HONEST.replace("        x = x.contiguous()", "        meddle()\n        x = x.contiguous()")


def all_in_order(court):
    """No process and no file of the candidate is left."""
    until = time.monotonic() + 5
    court.loop.run_until_complete(court.workshop.start())
    for parent in (court.workshop.device, court.workshop.interpret):
        while descendants(parent.facts["pid"]) and time.monotonic() < until:
            time.sleep(0.02)
        assert not descendants(parent.facts["pid"])
        assert not list(Path(parent.facts["root"]).iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidate", "verdict", "words"),
    [
        (EXITS, "RUNTIME", "it ended its own process"),
        (BOMB, "RUNTIME", "it started more processes than it may"),
        (PRINTS, "UNTIMED", ""),
        (CRASHES, "ILLEGAL_ACCESS", "it crashed with SIGSEGV"),
        (HOARDS, "IMPORT", "File too large"),
    ],
)
def test_it_gets_a_verdict_and_the_next_is_judged_normally(court, candidate, verdict, words):
    bounds = Bounds(compile_s=60, processes=100, disk_mb=64)
    found = court.verdict(REFERENCE, candidate, bounds=bounds)
    assert (found.verdict, words in found.reason) == (verdict, True), found.reason
    all_in_order(court)
    assert court.verdict(REFERENCE, HONEST).verdict == "UNTIMED"


@pytest.mark.slow
def test_it_reaches_nothing_outside(court):
    probe = court.loop.run_until_complete(
        court.workshop.device.run("mtmc_engine.system.probes:folder", {}, confinement=Confinement())
    )
    if len(probe.protections) < 4:
        pytest.skip(f"this machine only allows {sorted(probe.protections)}")
    another = court.folder / "scratch" / "results" / "another"
    another.mkdir(parents=True)
    (another / "another-1.flat").write_text("its result")
    found = court.verdict(REFERENCE, MEDDLES)
    assert found.verdict == "UNTIMED", found.reason
    assert any(file.stat().st_size for file in court.folder.rglob("truth-*.flat"))
    assert not (Path.home() / "mtmc-was-here").exists()
    all_in_order(court)

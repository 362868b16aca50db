"""Exercises proof and timing on a GPU: PYTHONPATH=. python tests/gpu/exercise_proof.py

Prints one line per candidate with its verdict, then the measurement of each sample. Needs no
test runner. Exits with 1 where a verdict is not the expected one.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from mtmc_engine.capture.client import task_of
from mtmc_engine.proof.confirm import confirm
from mtmc_engine.proof.prove import Bounds, Subject, prove
from mtmc_engine.schedule.legal import apply_action, legal_actions
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Workshop

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ("softmax", "rms_norm", "gelu")
GAINS = ("lower", "fuse", "fuse_epilogue", "one_pass")

HEAD = """
import torch
import torch.nn as nn
import triton
import triton.language as tl
"""

REFERENCE = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, a, b):
        return torch.relu(a) * 2 + b

def get_inputs():
    return [torch.randn(4096, 4096), torch.randn(4096, 4096)]

def get_init_inputs():
    return []
"""
)

KERNEL = (
    HEAD
    + """
@triton.jit
def fused(a_ptr, b_ptr, out_ptr, flag_ptr, n, far, BLOCK: tl.constexpr):
    {wait}
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, mask=at < n)
    b = tl.load(b_ptr + at, mask=at < n)
    tl.store(out_ptr + at + far, {value}, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        flag = torch.zeros(1, dtype=torch.int32, device=a.device)
        n = a.numel()
        {before}
        fused[(triton.cdiv(n, 1024),)](a, b, out, flag, n, {far}, BLOCK=1024)
        {after}
        return out
"""
)
PLAIN = {
    "wait": "pass",
    "value": "tl.maximum(a, 0.0) * 2 + b",
    "far": "0",
    "before": "pass",
    "after": "pass",
}
SIDE = {
    "before": "side = torch.cuda.Stream(); torch.cuda.set_stream(side)",
    "after": "torch.cuda.set_stream(torch.cuda.default_stream())",
}
# Name, changes to the plain kernel, verdicts that are right.
CANDIDATES = (
    ("honest", {}, ("FASTER", "SAME", "AMBIGUOUS")),
    ("zeros", {"value": "a * 0"}, ("NUMERIC",)),
    ("far outside", {"far": str(1 << 40)}, ("ILLEGAL_ACCESS",)),
    ("honest after a crash", {}, ("FASTER", "SAME", "AMBIGUOUS")),
    ("never ends", {"wait": "while tl.load(flag_ptr, volatile=True) == 0: pass"}, ("TIMEOUT",)),
    ("honest after a hang", {}, ("FASTER", "SAME", "AMBIGUOUS")),
    ("side stream", SIDE, ("SUSPICIOUS", "NUMERIC", "FASTER", "SAME", "SLOWER", "AMBIGUOUS")),
    ("writes its input", {"after": "a.zero_()"}, ("MUTATED_INPUT",)),
)


class Bench:
    """Opens files and proves candidates on the card that is here."""

    def __init__(self, workshop, folder):
        self.workshop, self.folder = workshop, folder
        self.card = card("auto")
        self.wrong = 0

    async def open(self, path):
        job = {"file": str(path), "seed": 0, "target_card": msgspec.to_builtins(self.card)}
        found = await self.workshop.device.run("mtmc_engine.capture.worker:open_task", job)
        return task_of(found)

    async def prove(self, name, task, source, **options):
        began = time.monotonic()
        subject = Subject(task=task, source=source, name=name, folder=self.folder, **options)
        verdict = await prove(subject, self.workshop, lambda progress: None)
        seconds = time.monotonic() - began
        print(f"{name:24} {verdict.verdict:15} {seconds:6.1f} s  {verdict.reason}")
        for gate in verdict.gates:
            print(f"    {gate.gate:10} {gate.seconds:6.2f} s  {gate.sentence}")
        for warning in verdict.warnings:
            print(f"    warning: {warning}")
        if verdict.gates and not verdict.gates[-1].passed:
            print("    " + verdict.gates[-1].log[-1500:].replace("\n", "\n    "))
        if verdict.measurement is not None:
            found = msgspec.to_builtins(verdict.measurement)
            found["contestants"] = {c["name"]: c["time_us"] for c in found["contestants"]}
            print("    " + json.dumps(found))
        return subject, verdict

    def expect(self, verdict, right):
        if verdict.verdict not in right:
            self.wrong += 1
            print(f"    NOT EXPECTED: right would be {' or '.join(right)}")


async def candidates(bench, folder):
    """Honest ones and others."""
    path = Path(folder) / "fused_file.py"
    path.write_text(REFERENCE)
    task = await bench.open(path)
    bounds = Bounds(values_s=60)
    for name, changes, right in CANDIDATES:
        source = KERNEL.format(**{**PLAIN, **changes})
        _, verdict = await bench.prove(name, task, source, bounds=bounds)
        bench.expect(verdict, right)
    plain = KERNEL.format(**PLAIN)
    for _ in range(3):
        copied = {"previous": plain}
        _, verdict = await bench.prove("copy of the baseline", task, plain, baselines=copied)
        bench.expect(verdict, ("SAME", "AMBIGUOUS"))


async def samples(bench):
    """The samples, lowered and fused as far as the first legal steps go, against the original."""
    for name in SAMPLES:
        task = await bench.open(ROOT / "samples" / f"{name}.py")
        schedule = root(task.graph)
        previous = render(task, schedule)
        for _ in range(4):
            steps = [a for a in legal_actions(task, schedule, bench.card) if a.kind in GAINS]
            if not steps:
                break
            schedule = apply_action(task, schedule, steps[0])
        source = render(task, schedule)
        subject, verdict = await bench.prove(
            name, task, source, baselines={"previous": previous}, schedule=schedule
        )
        bench.expect(verdict, ("FASTER", "SAME", "AMBIGUOUS", "SLOWER"))
        if verdict.proven:
            again = await confirm(subject, bench.workshop)
            ratios = {key: round(ratio.value, 3) for key, ratio in again.against.items()}
            print(f"    confirmed: {again.time_us:.1f} µs, {ratios}, noise {again.noise:.3%}")


async def main():
    workshop = Workshop()
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(workshop, folder)
            print(bench.card)
            await samples(bench)
            await candidates(bench, folder)
            return bench.wrong
    finally:
        await workshop.close()


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)

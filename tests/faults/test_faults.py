"""Programs with one injected fault are rejected, the same programs without it are not."""

import asyncio
import os
import random

import numpy as np
import pytest
import torch
from fault_bench import Bench
from fault_programs import KINDS, faults_of, has_effect, numpy_result, random_program, torch_source
from hypothesis import given, settings
from hypothesis import strategies as st

SEED = int(os.environ.get("MTMC_SEED", "20"))
SOAK_PROGRAMS = int(os.environ.get("MTMC_SOAK_PROGRAMS", "500"))


def judged(folder, seed, programs):
    """Figures over so many random programs, each with one fault of every kind that fits."""

    async def run():
        bench = Bench(folder)
        try:
            return await bench.run(seed, programs)
        finally:
            await bench.workshop.close()

    return asyncio.run(run())


def shown(figures):
    print(f"\n{figures.table()}")
    for program in figures.missed:
        print("not found:", program)
    for program, said in figures.accused:
        print("accused:", program, said)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_the_oracle_agrees_with_the_reference(source):
    program = random_program(source)
    names = {}
    exec(torch_source(program), names)
    torch.manual_seed(1)
    given_ = names["inputs"]()
    true = names["operator"](*(value.double() for value in given_)).numpy()
    by_rows = (v.t() if program.down and v.dim() == 2 else v for v in given_)
    named = zip(program.uses, (v.numpy() for v in by_rows), strict=True)
    found = numpy_result(program, dict(named))
    found = found.T if program.down else found
    np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-9)


def test_every_kind_of_fault_can_have_an_effect():
    source = random.Random(SEED)
    effective = set()
    for _ in range(40):
        program = random_program(source)
        for fault in faults_of(program):
            if fault.kind not in effective and has_effect(program.with_fault(fault)):
                effective.add(fault.kind)
    assert effective == set(KINDS)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sample_of_faults(tmp_path):
    figures = judged(tmp_path, SEED, programs=7)
    shown(figures)
    assert figures.right + figures.effective.total() >= 30
    assert not figures.accused
    assert figures.share >= 0.98


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_thousands_of_faults(tmp_path):
    figures = judged(tmp_path, SEED + 1, SOAK_PROGRAMS)
    shown(figures)
    assert not figures.accused
    assert figures.share >= 0.98

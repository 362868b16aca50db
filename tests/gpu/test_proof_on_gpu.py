"""Proof and timing on a real GPU."""

import subprocess
import sys
from pathlib import Path

import pytest

from mtmc_engine.system.devices import local_gpu


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(local_gpu() is None, reason="needs an NVIDIA GPU")
def test_verdicts_and_times():
    script = Path(__file__).parent / "exercise_proof.py"
    command = [sys.executable, str(script)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr

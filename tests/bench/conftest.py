"""Folders of small tasks, and benches that are ended with their test."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]

SCALE = '''
"""A scale, a shift and ReLU."""
import torch


def scale(x):
    return torch.relu(x * 2.0 + 1.0)


def inputs():
    return [torch.randn(64, 96)]
'''

SOFTMAX = '''
"""Row softmax."""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(16, 64)]
'''

BROKEN = '''
"""It needs what nobody has."""
import a_package_that_nobody_has


def inputs():
    return []
'''


@pytest.fixture
def folder(tmp_path):
    """Three tasks, one of which cannot be opened, and a helper that is none."""
    place = tmp_path / "tasks"
    place.mkdir()
    (place / "pointwise_scale.py").write_text(SCALE)
    (place / "norm_softmax.py").write_text(SOFTMAX)
    (place / "broken.py").write_text(BROKEN)
    (place / "helper.py").write_text("WIDTH = 3\n")
    return place


@pytest.fixture
def begin(tmp_path):
    """Starts `mtmc-tui bench`; what still runs at the end is killed with its children."""
    running = []

    def begun(*arguments):
        environment = {**os.environ, "MTMC_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mtmc_tui.cli", "bench", *map(str, arguments)],
            cwd=ROOT,
            env={**environment, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield begun
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def lines_of(path):
    return [msgspec.json.decode(text) for text in path.read_bytes().splitlines()]

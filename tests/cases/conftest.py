"""A court: a reference and a candidate go in as text, a verdict comes out of the real prove()."""

import asyncio
import textwrap

import msgspec
import pytest

from mtmc_engine.capture.client import task_of
from mtmc_engine.proof.prove import Subject, prove
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Workshop

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
"""


class Court:
    """One pair of warm parents for all cases."""

    def __init__(self, folder):
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.workshop = Workshop()
        self.count = 0

    def place(self, reference, candidate, files=None):
        """Writes both to a folder of their own; the reference is importable as `operator_file`."""
        self.count += 1
        folder = self.folder / f"case{self.count}"
        folder.mkdir()
        (folder / "operator_file.py").write_text(HEAD + textwrap.dedent(reference))
        (folder / "kernel_file.py").write_text(HEAD + textwrap.dedent(candidate))
        for name, text in (files or {}).items():
            (folder / name).write_text(HEAD + textwrap.dedent(text))
        return folder

    def open(self, path, **arguments):
        target = msgspec.to_builtins(card("sm_90"))
        job = {"file": str(path), "seed": 0, "target_card": target, **arguments}
        work = self.workshop.device.run("mtmc_engine.capture.worker:open_task", job)
        return task_of(self.loop.run_until_complete(work))

    def verdict(self, reference, candidate, files=None, **options):
        folder = self.place(reference, candidate, files)
        task = self.open(folder / "operator_file.py")
        subject = Subject(
            task=task,
            source=(folder / "kernel_file.py").read_text(),
            name="kernel_file",
            folder=str(folder / "scratch"),
            beside=str(folder),
            **options,
        )
        return self.loop.run_until_complete(prove(subject, self.workshop, lambda progress: None))

    def close(self):
        self.loop.run_until_complete(self.workshop.close())
        self.loop.close()


@pytest.fixture(scope="session")
def court(tmp_path_factory):
    court = Court(tmp_path_factory.mktemp("court"))
    yield court
    court.close()

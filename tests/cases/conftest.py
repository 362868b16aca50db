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
    """One pair of warm parents for all cases; a reference is opened once for all its candidates."""

    def __init__(self, folder):
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.workshop = Workshop()
        self.count = 0
        self.opened = {}

    def place(self, reference, files=None):
        """Writes the reference to a folder of its own, where it is importable as `operator_file`.

        `line` of an error counts from the head, which has six lines.
        """
        self.count += 1
        folder = self.folder / f"case{self.count}"
        folder.mkdir()
        (folder / "operator_file.py").write_text(HEAD + textwrap.dedent(reference))
        for name, text in (files or {}).items():
            (folder / name).write_text(HEAD + textwrap.dedent(text))
        return folder

    def open(self, path, seed=0, **arguments):
        target = msgspec.to_builtins(card("sm_90"))
        job = {"file": str(path), "seed": seed, "target_card": target, **arguments}
        work = self.workshop.device.run("mtmc_engine.capture.worker:open_task", job)
        return task_of(self.loop.run_until_complete(work))

    def verdict(self, reference, candidate, files=None, seed=0, **options):
        key = (reference, tuple(sorted((files or {}).items())), seed)
        if key not in self.opened:
            folder = self.place(reference, files)
            self.opened[key] = folder, self.open(folder / "operator_file.py", seed)
        folder, task = self.opened[key]
        return self.judge(task, folder, candidate, seed=seed, **options)

    def judge(self, task, folder, candidate, **options):
        subject = Subject(
            task=task,
            source=HEAD + textwrap.dedent(candidate),
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

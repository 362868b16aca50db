"""The real proof of a function against a reference, both given as text without imports."""

import asyncio

import msgspec

from mtmc_engine.capture.client import task_of
from mtmc_engine.proof.prove import Subject, prove
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Workshop

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"


class ExampleCourt:
    """One pair of warm parents; references are opened once each."""

    def __init__(self, folder):
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.workshop = Workshop()
        self.opened = {}

    def verdict(self, reference, candidate):
        if reference not in self.opened:
            folder = self.folder / f"task{len(self.opened)}"
            folder.mkdir()
            (folder / "operator_file.py").write_text(HEAD + reference)
            job = {
                "file": str(folder / "operator_file.py"),
                "seed": 0,
                "target_card": msgspec.to_builtins(card("sm_90")),
            }
            work = self.workshop.device.run("mtmc_engine.capture.worker:open_task", job)
            self.opened[reference] = folder, task_of(self.loop.run_until_complete(work))
        folder, task = self.opened[reference]
        subject = Subject(
            task=task, source=HEAD + candidate, name="candidate", folder=str(folder / "scratch")
        )
        return self.loop.run_until_complete(prove(subject, self.workshop, lambda progress: None))

    def close(self):
        self.loop.run_until_complete(self.workshop.close())
        self.loop.close()

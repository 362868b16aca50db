"""One warm parent for all tests of this folder, and a short way to open a file in it."""

import textwrap

import msgspec
import pytest
import pytest_asyncio

from mtmc_engine.capture.client import task_of
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import WarmParent


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def device():
    parent = WarmParent("device")
    await parent.start()
    yield parent
    await parent.close()


@pytest.fixture
def opened(device):
    """opened(path, **arguments): the task of a file."""

    async def open_file(path, **arguments):
        target = msgspec.to_builtins(card("sm_90"))
        job = {"file": str(path), "seed": 0, "target_card": target, **arguments}
        return task_of(await device.run("mtmc_engine.capture.worker:open_task", job))

    return open_file


@pytest.fixture
def written(tmp_path):
    """written(text, name): a file with that text."""

    def write(text, name="operator_file.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write

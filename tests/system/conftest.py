"""Warm parents for the tests of this folder."""

import pytest
import pytest_asyncio

from mtmc_engine.system import jobs
from mtmc_engine.system.jobs import WarmParent, Workshop

BARE = """
import mtmc_engine.system.warm as warm
warm._PRELOAD = warm._LATER = {"interpret": (), "device": ()}
warm._FOR_BOTH = ()
warm._hash_compiler = lambda: None
main("""


def bare_start():
    """The program of a parent that starts without torch, in a quarter of a second."""
    before, _, after = jobs._START.rpartition("main(")
    return f"{before}\n{BARE}{after}"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def workshop():
    """One pair for all that only run jobs."""
    workshop = Workshop()
    await workshop.start()
    yield workshop
    await workshop.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plain():
    """One parent without torch, for all that need none: its forks are small."""
    parent = WarmParent("device")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "_START", bare_start())
        await parent.start()
    yield parent
    await parent.close()


@pytest.fixture
def bare(monkeypatch):
    """Parents that start now do so without torch: for tests of their own lives."""
    monkeypatch.setattr(jobs, "_START", bare_start())

"""One pair of warm parents for all tests of this folder."""

import pytest_asyncio

from mtmc_engine.system.jobs import Workshop


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def workshop():
    workshop = Workshop()
    await workshop.start()
    yield workshop
    await workshop.close()

"""What the tests of schedules share."""

import pytest_asyncio

from mtmc_engine.system.jobs import Workshop


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def workshop():
    """One pair of warm parents, each started with its first job."""
    workshop = Workshop()
    yield workshop
    await workshop.close()

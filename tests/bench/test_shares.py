"""Device memory is shared out, never more than there is."""

import asyncio

from mtmc_engine.bench.shares import Shares


async def test_what_does_not_fit_waits():
    shares, held, most = Shares(10), 0, 0

    async def work(wanted):
        nonlocal held, most
        async with shares.held(wanted):
            held += wanted
            most = max(most, held)
            await asyncio.sleep(0.01)
            held -= wanted

    await asyncio.gather(*(work(wanted) for wanted in (6, 6, 4, 3, 10, 1)))
    assert held == 0
    assert most <= 10


async def test_what_is_larger_than_all_takes_all():
    shares = Shares(10)
    async with shares.held(1000):
        waiting = asyncio.create_task(_held(shares, 1))
        await asyncio.sleep(0.02)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 1)


async def test_a_share_comes_back_when_its_holder_is_cancelled():
    shares = Shares(10)
    holder = asyncio.create_task(_held(shares, 10, 60))
    await asyncio.sleep(0.01)
    holder.cancel()
    await asyncio.gather(holder, return_exceptions=True)
    await asyncio.wait_for(_held(shares, 10), 1)


async def _held(shares, wanted, seconds=0.0):
    async with shares.held(wanted):
        await asyncio.sleep(seconds)

"""Lines on descriptors: nothing blocks, nothing is lost, a closed reader is noticed."""

import asyncio
import os
import time

from mtmc_engine.session.wire import LineWriter, receive_lines


async def test_a_reader_that_is_slow_blocks_nobody():
    reader, writer = os.pipe()
    lines = LineWriter(writer, lambda: None)
    started = time.perf_counter()
    for number in range(50):
        lines.write(f"{number} ".encode() + b"x" * 20_000)
    assert time.perf_counter() - started < 0.1
    with os.fdopen(reader, "rb") as stream:
        heard = [(await asyncio.to_thread(stream.readline)).split()[0] for _ in range(50)]
    assert heard == [str(number).encode() for number in range(50)]
    lines.close()
    os.close(writer)


async def test_close_writes_what_is_left():
    reader, writer = os.pipe()
    lines = LineWriter(writer, lambda: None)
    lines.write(b"last")
    lines.close()
    assert os.read(reader, 100) == b"last\n"
    os.close(reader)
    os.close(writer)


async def test_a_reader_that_is_gone_is_told_once():
    reader, writer = os.pipe()
    gone = asyncio.Event()
    lines = LineWriter(writer, gone.set)
    os.close(reader)
    lines.write(b"nobody")
    await asyncio.wait_for(gone.wait(), 2)
    lines.write(b"still nobody")
    lines.close()
    os.close(writer)


async def test_lines_arrive_whole_and_the_end_is_told():
    reader, writer = os.pipe()
    heard = asyncio.Queue()
    receive_lines(reader, heard.put_nowait)
    for part in (b"on", b"e\ntwo\nthr", b"ee"):
        os.write(writer, part)
        await asyncio.sleep(0.02)
    os.close(writer)
    got = [await asyncio.wait_for(heard.get(), 2) for _ in range(4)]
    assert got == [b"one", b"two", b"three", None]
    os.close(reader)

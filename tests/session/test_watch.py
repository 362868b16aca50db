"""Watching: each way of saving is seen once, and only real changes count."""

import asyncio
import os

import pytest

from mtmc_engine.capture.source import read_source
from mtmc_engine.session.stale import content_digest
from mtmc_engine.session.watch import changes


def in_place(path, text):
    path.write_text(text)


def atomic(path, text):
    other = path.with_suffix(".tmp")
    other.write_text(text)
    os.replace(other, path)


def with_backup(path, text):
    path.rename(path.with_suffix(".bak"))
    path.write_text(text)


@pytest.fixture
async def seen(tmp_path):
    path = tmp_path / "op.py"
    path.write_text("a = 1\n")
    found = asyncio.Queue()

    async def follow():
        async for digest in changes(path, content_digest(path)):
            found.put_nowait(digest)

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.3)
    yield path, found
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def next_of(found):
    return await asyncio.wait_for(found.get(), 5)


@pytest.mark.parametrize("save", [in_place, atomic, with_backup])
async def test_every_save_is_seen(seen, save):
    path, found = seen
    for number in range(3):
        save(path, f"a = {number + 2}\n")
        assert await next_of(found) == content_digest(path)


async def test_the_same_content_says_nothing(seen):
    path, found = seen
    path.write_text("a = 1\n")
    path.touch()
    (path.parent / "other.py").write_text("b = 1\n")
    await asyncio.sleep(1)
    assert found.empty()


async def test_a_change_before_watching_began_is_seen(tmp_path):
    path = tmp_path / "op.py"
    path.write_text("new\n")
    watching = changes(path, "digest of the old text")
    assert await asyncio.wait_for(anext(watching), 10) == content_digest(path)
    await watching.aclose()


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfa = 1\n",
        b"a = 1\r\nb = 2\r\n",
        b"a = 1\rb = 2\r",
        b"# coding: latin-1\na = '\xe9'\n",
    ],
    ids=["mark", "CRLF", "CR", "latin-1"],
)
def test_a_file_that_nobody_touched_is_what_was_opened(tmp_path, data):
    path = tmp_path / "op.py"
    path.write_bytes(data)
    assert content_digest(path) == read_source(str(path)).digest

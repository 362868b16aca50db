"""The client: an engine's death is noticed at once and said in one sentence."""

import asyncio
import os
import signal
import time

import pytest

from mtmc_engine.core.events import Failed, Stop
from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import Engine, engine_command, new_log, run_document


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MTMC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def operator(tmp_path):
    path = tmp_path / "op.py"
    path.write_text("import time\ntime.sleep(60)\n")
    return path


async def collected(engine):
    return [event async for event in engine.events()]


async def test_a_killed_engine_is_a_failure_that_names_the_log(operator):
    engine = await Engine.start(RunOptions(str(operator), yes=True, planner="roofline"))
    reading = asyncio.create_task(collected(engine))
    await asyncio.sleep(0.2)
    started = time.perf_counter()
    engine.kill()
    events = await asyncio.wait_for(reading, 5)
    assert time.perf_counter() - started < 1
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert failed.kind == "died"
    assert str(engine.log) in failed.text
    assert "--resume" in failed.text
    assert engine.log.exists()
    await engine.send(Stop())
    assert await engine.wait() == -signal.SIGKILL


async def test_an_engine_that_cannot_be_imported(operator, monkeypatch):
    """Its traceback is in the log, not on the terminal."""
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    engine = await Engine.start(RunOptions(str(operator)))
    (failed,) = await collected(engine)
    assert isinstance(failed, Failed)
    assert engine.log.read_text() != ""


async def test_failure_of_the_engine_itself_is_passed_on(tmp_path):
    engine = await Engine.start(RunOptions(str(tmp_path / "none.py")))
    (failed,) = await collected(engine)
    assert failed.exit_code == 2
    assert await engine.wait() == 2


async def test_stop_takes_a_second(operator):
    engine = await Engine.start(RunOptions(str(operator), yes=True, planner="roofline"))
    await asyncio.sleep(1.0)
    started = time.perf_counter()
    await engine.stop()
    assert time.perf_counter() - started < 1.1
    assert engine.process.returncode is not None


async def test_a_module_of_the_user_does_not_shadow_ours(tmp_path, monkeypatch):
    (tmp_path / "select.py").write_text("raise RuntimeError('shadowed')\n")
    (tmp_path / "queue.py").write_text("raise RuntimeError('shadowed')\n")
    monkeypatch.chdir(tmp_path)
    code, document = await run_document(["sessions"])
    assert code == 0
    assert document.strip() == b"[]"


def test_logs_are_beside_the_journals(home):
    assert new_log().parent == home / "logs"


def test_engine_runs_under_this_interpreter():
    assert os.path.exists(engine_command(["doctor"])[0])

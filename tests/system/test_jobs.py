"""Jobs in real children: each ending, what is left behind, and what a child can see."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mtmc_engine.core.errors import ReferenceFailed, WorkerDied
from mtmc_engine.system.job_wire import read_report
from mtmc_engine.system.jobs import Ending, Limits, WarmParent
from mtmc_engine.system.processes import children_of, descendants

pytestmark = pytest.mark.asyncio(loop_scope="session")
DEEDS = "tests.system.deeds:"


def alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # no such file; or it ended between the opening and the reading
        return False


async def gone(pid: int, within_s: float = 5.0) -> bool:
    until = time.monotonic() + within_s
    while alive(pid) and time.monotonic() < until:
        await asyncio.sleep(0.02)
    return not alive(pid)


async def in_order(parent: WarmParent) -> None:
    """The next job is served and no process of an earlier one is left."""
    result = await parent.run(DEEDS + "echo", {"still": "here"})
    assert (result.ending, result.value) == (Ending.DONE, {"still": "here"})
    for child in children_of(parent.facts["pid"]):
        assert await gone(child)


async def test_value_comes_back(workshop):
    result = await workshop.device.run(DEEDS + "echo", {"a": [1, 2.5, None, "é"]})
    assert result.ending is Ending.DONE
    assert result.value == {"a": [1, 2.5, None, "é"]}
    assert result.unwrap() == result.value


async def test_an_empty_job_is_quick(workshop):
    await workshop.device.run(DEEDS + "echo", {})
    times = []
    for _ in range(15):
        began = time.perf_counter()
        await workshop.device.run(DEEDS + "echo", {})
        times.append(time.perf_counter() - began)
    assert min(times) < 0.15


async def test_large_values_travel_both_ways(workshop):
    sent = await workshop.device.run(DEEDS + "echo", {"x": "y" * 3_000_000})
    assert len(sent.value["x"]) == 3_000_000
    made = await workshop.device.run(DEEDS + "large", {"bytes": 5_000_000})
    assert len(made.value) == 5_000_000


async def test_progress_arrives_in_order(workshop):
    seen = []
    result = await workshop.device.run(DEEDS + "counts", {"n": 50}, progress=seen.append)
    assert seen == [{"done": n} for n in range(50)]
    assert result.value == 50


async def test_progress_arrives_while_the_job_runs(workshop):
    seen = asyncio.Event()
    job = asyncio.create_task(
        workshop.device.run(DEEDS + "hangs", {}, Limits(wall_s=30), lambda _: seen.set())
    )
    await asyncio.wait_for(seen.wait(), 10)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    await in_order(workshop.device)


async def test_an_exception_has_type_message_and_traceback(workshop):
    result = await workshop.device.run(DEEDS + "raises", {})
    assert result.ending is Ending.RAISED
    assert result.error == "KeyError: 'missing'"
    assert 'return {}["missing"]' in result.traceback
    assert "supervise.py" not in result.traceback
    assert result.output == "about to raise\n"
    with pytest.raises(WorkerDied, match="KeyError"):
        result.unwrap()


async def test_our_own_errors_cross_the_process_border(workshop):
    result = await workshop.device.run(DEEDS + "blames_the_reference", {})
    with pytest.raises(ReferenceFailed, match="divides by zero") as caught:
        result.unwrap()
    assert caught.value.line == 3


async def test_sys_exit_is_an_exception(workshop):
    result = await workshop.device.run(DEEDS + "sys_exits", {})
    assert (result.ending, result.error) == (Ending.RAISED, "SystemExit: enough")


async def test_what_json_cannot_say_is_an_exception(workshop):
    result = await workshop.device.run(DEEDS + "unsayable", {})
    assert result.ending is Ending.RAISED
    assert "object" in result.error


async def test_an_unknown_function_is_an_exception(workshop):
    result = await workshop.device.run(DEEDS + "nowhere", {})
    assert result.ending is Ending.RAISED
    assert "nowhere" in result.error


@pytest.mark.parametrize("code", [0, 7])
async def test_leaving_without_an_answer(workshop, code):
    result = await workshop.device.run(DEEDS + "exits", {"code": code})
    assert result.ending is Ending.EXITED
    assert f"exit code {code}" in result.error
    assert result.output == "last words\n"
    await in_order(workshop.device)


@pytest.mark.parametrize(
    ("deed", "number"), [("aborts", signal.SIGABRT), ("segfaults", signal.SIGSEGV)]
)
async def test_a_crash_costs_that_child_only(workshop, deed, number):
    result = await workshop.device.run(DEEDS + deed, {})
    assert (result.ending, result.signal) == (Ending.SIGNAL, number)
    assert number.name in result.error
    assert "deeds.py" in result.output  # the interpreter's own word on where it was
    await in_order(workshop.device)


async def test_what_was_printed_before_an_abort_is_kept(workshop):
    assert "before the abort\n" in (await workshop.device.run(DEEDS + "aborts", {})).output


async def test_a_hang_is_ended(workshop):
    began = time.monotonic()
    result = await workshop.device.run(DEEDS + "hangs", {}, Limits(wall_s=0.5))
    assert result.ending is Ending.TIMEOUT
    assert "0.5 s" in result.error
    assert 0.5 <= result.seconds < 1.5
    assert time.monotonic() - began < 3
    await in_order(workshop.device)


@pytest.mark.parametrize("deed", ["hoards", "children_hoard"])
async def test_memory_is_bounded_over_all_processes(workshop, deed):
    result = await workshop.device.run(DEEDS + deed, {}, Limits(wall_s=20, memory_mb=550))
    assert result.ending is Ending.MEMORY
    assert "550 MB" in result.error
    await in_order(workshop.device)


async def test_endless_output_is_read_and_only_its_tail_kept(workshop):
    limits = Limits(wall_s=30, output_kb=16)
    result = await workshop.device.run(DEEDS + "prints", {"megabytes": 300}, limits)
    assert result.ending is Ending.DONE
    assert result.output.endswith("the end\n")
    assert len(result.output) <= 16 * 1024


@pytest.mark.parametrize("then", ["return", "hang"])
async def test_no_grandchild_survives(workshop, tmp_path, then):
    note = tmp_path / "pid"
    note.touch()
    result = await workshop.device.run(
        DEEDS + "leaves_children", {"note": str(note), "then": then}, Limits(wall_s=2)
    )
    assert result.ending is (Ending.DONE if then == "return" else Ending.TIMEOUT)
    assert not alive(int(note.read_text()))
    await in_order(workshop.device)


async def test_cancelling_kills_the_job(workshop, tmp_path):
    note = tmp_path / "pid"
    note.touch()
    left = asyncio.Event()
    job = asyncio.create_task(
        workshop.device.run(
            DEEDS + "leaves_children",
            {"note": str(note), "then": "hang"},
            progress=lambda _: left.set(),
        )
    )
    await asyncio.wait_for(left.wait(), 10)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert not alive(int(note.read_text()))
    await in_order(workshop.device)


async def test_jobs_run_side_by_side(workshop):
    began = time.monotonic()
    results = await asyncio.gather(
        *(workshop.device.run(DEEDS + "sleeps", {"seconds": 0.6}) for _ in range(6)),
        workshop.device.run(DEEDS + "aborts", {}),
        workshop.interpret.run(DEEDS + "sleeps", {"seconds": 0.6}),
    )
    assert time.monotonic() - began < 2.5
    pids = [result.value for result in results if result.ending is Ending.DONE]
    assert len(set(pids)) == 7
    assert results[6].signal == signal.SIGABRT


async def test_a_job_that_kills_its_supervisor(workshop):
    result = await workshop.device.run(DEEDS + "kills_its_parent", {}, Limits(wall_s=20))
    assert (result.ending, result.signal) == (Ending.SIGNAL, signal.SIGKILL)
    await in_order(workshop.device)


async def test_a_job_that_stops_its_supervisor(workshop, monkeypatch):
    monkeypatch.setattr("mtmc_engine.system.jobs._GRACE_S", 0.5)
    result = await workshop.device.run(DEEDS + "stops_its_parent", {}, Limits(wall_s=0.5))
    assert result.ending is Ending.TIMEOUT
    await in_order(workshop.device)


@pytest.mark.usefixtures("bare")
async def test_a_job_that_kills_the_warm_parent():
    parent = WarmParent("interpret")
    try:
        await parent.start()
        first = parent.facts
        with pytest.raises(WorkerDied, match="starts again"):
            await parent.run(DEEDS + "kills_the_warm_parent", {})
        assert await gone(first["pid"])
        await in_order(parent)
        assert parent.facts["pid"] != first["pid"]
        assert not Path(first["root"]).exists()
    finally:
        await parent.close()


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_warm_parent_that_died_idle_is_started_again(number):
    parent = WarmParent("interpret")
    try:
        await parent.start()
        first = parent.facts["pid"]
        os.kill(first, number)
        result = await parent.run(DEEDS + "echo", {"again": 1})
        assert result.value == {"again": 1}
        assert parent.facts["pid"] != first
    finally:
        await parent.close()


@pytest.mark.usefixtures("bare")
async def test_a_warm_parent_that_does_not_answer_is_replaced(monkeypatch):
    parent = WarmParent("interpret")
    try:
        await parent.start()
        monkeypatch.setattr("mtmc_engine.system.jobs._GRACE_S", 0.5)
        os.kill(parent.facts["pid"], signal.SIGSTOP)
        results = await asyncio.gather(*(parent.run(DEEDS + "echo", {"n": n}) for n in range(3)))
        assert [result.value for result in results] == [{"n": 0}, {"n": 1}, {"n": 2}]
        await in_order(parent)
    finally:
        await parent.close()


async def test_an_answer_needs_the_nonce(workshop):
    result = await workshop.device.run(DEEDS + "forges", {})
    assert result.value == "honest"


async def test_what_a_job_sees(workshop, monkeypatch):
    result = await workshop.device.run(DEEDS + "facts", {})
    seen = result.value
    assert seen["threads"] == 1
    assert seen["cuda"] is False
    assert seen["session"] == seen["pid"]
    assert "TRITON_INTERPRET" not in seen["environment"]
    assert seen["environment"]["OMP_NUM_THREADS"] == "1"
    for name in ("TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        assert seen["environment"][name].startswith(seen["folder"])
    assert not Path(seen["folder"]).exists()
    assert {"textual", "rich", "openai", "llama_cpp"}.isdisjoint(seen["modules"])
    interpreted = await workshop.interpret.run(DEEDS + "facts", {})
    assert interpreted.value["environment"]["TRITON_INTERPRET"] == "1"


@pytest.mark.usefixtures("bare")
async def test_no_key_reaches_a_worker(monkeypatch, tmp_path):
    secret = "not-for-candidates"
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "my_secret", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, secret)
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{secret}@proxy.example:3128")
    monkeypatch.setenv("HARMLESS", "kept")
    (tmp_path / "token.py").write_text("raise RuntimeError('the user's folder shadows a module')")
    monkeypatch.chdir(tmp_path)
    parent = WarmParent("interpret")
    try:
        result = await parent.run(DEEDS + "surroundings", {})
        assert result.value["environment"]["HARMLESS"] == "kept"
        assert secret not in json.dumps(result.value["environment"])
        assert secret.encode() not in Path(f"/proc/{parent.facts['pid']}/environ").read_bytes()
        assert str(tmp_path) not in result.value["path"]
        assert "" not in result.value["path"]
    finally:
        await parent.close()


async def test_the_network_is_cut_where_permitted(workshop):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = await workshop.device.run(DEEDS + "dials", {"port": port})
    assert ("network" in result.protections) == (result.ending is Ending.RAISED)


async def test_torch_computes_in_a_fork(workshop):
    for parent in (workshop.device, workshop.interpret):
        result = await parent.run(DEEDS + "multiplies", {}, Limits(wall_s=20))
        assert result.value == 256.0**3


async def test_triton_is_interpreted_in_one_parent_and_compiled_in_the_other(workshop, tmp_path):
    interpreted, compiled = await asyncio.gather(
        workshop.interpret.run(DEEDS + "adds_one", {}),
        workshop.device.run(DEEDS + "compiles", {}, cache=tmp_path),
    )
    assert interpreted.unwrap() == [float(n) for n in range(1, 9)]
    assert compiled.unwrap() > 1000
    assert "FP_FUSION" not in compiled.output
    assert list((tmp_path / "triton").iterdir())


ENGINE = """
import asyncio, sys
from mtmc_engine.system import jobs
from mtmc_engine.system.jobs import WarmParent
from tests.system.conftest import bare_start

jobs._START = bare_start()

async def main():
    parent = WarmParent("interpret")
    await parent.start()
    def say(value):
        print(parent.facts["pid"], parent.facts["root"], flush=True)
    await parent.run("tests.system.deeds:leaves_children",
                     {"note": sys.argv[1], "then": "hang"}, progress=say)

asyncio.run(main())
"""


async def test_a_folder_that_was_cleaned_away_is_made_again(workshop):
    shutil.rmtree(workshop.device.facts["root"])
    await in_order(workshop.device)
    assert list(Path(workshop.device.facts["root"]).iterdir()) == []


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("also_warm_parent", [False, True])
async def test_when_the_engine_is_killed_nothing_is_left(workshop, tmp_path, also_warm_parent):
    note = tmp_path / "pid"
    note.touch()
    engine = subprocess.Popen(
        [sys.executable, "-c", ENGINE, str(note)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    first, root = (await asyncio.to_thread(engine.stdout.readline)).split()
    warm = int(first)
    grandchild = int(note.read_text())
    family = [warm, *descendants(warm), grandchild]
    assert all(map(alive, family))
    assert len(family) >= 4
    engine.kill()
    if also_warm_parent:
        os.kill(warm, signal.SIGKILL)
    engine.wait()
    for pid in family:
        assert await gone(pid)
    if also_warm_parent:  # what it could not remove, the next one does
        parent = WarmParent("interpret")
        await parent.start()
        await parent.close()
    assert not Path(root).exists()
    assert Path(workshop.interpret.facts["root"]).exists()  # in use


async def test_a_worker_that_cannot_start_says_why(monkeypatch):
    monkeypatch.setattr("mtmc_engine.system.jobs._START", "import no_such_module")
    parent = WarmParent("device")
    with pytest.raises(WorkerDied, match="no_such_module"):
        await parent.run(DEEDS + "echo", {})


@pytest.mark.usefixtures("bare")
async def test_a_start_that_is_cancelled_leaves_nothing_and_can_be_repeated():
    parent = WarmParent("interpret")
    before = set(children_of(os.getpid()))
    starting = asyncio.create_task(parent.start())
    while not set(children_of(os.getpid())) - before:
        await asyncio.sleep(0.01)
    (warm,) = set(children_of(os.getpid())) - before
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await gone(warm)
    try:
        await in_order(parent)
    finally:
        await parent.close()


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancellation_is_heard_whenever_it_comes(turns):
    """Also in the very turn of the loop in which the supervisor's first line is read."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(0)
    work = asyncio.create_task(read_report(ours, 30.0, 5.0))
    with theirs:
        await asyncio.sleep(0.01)
        theirs.sendall(b'{"supervisor": 1}\n')
        for _ in range(turns):
            await asyncio.sleep(0)
        work.cancel()
        await asyncio.sleep(0.02)
        assert theirs.recv(1) == b""  # the supervisor is told
    with pytest.raises(asyncio.CancelledError):
        await work

"""Confined jobs in real children: what they cannot reach, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import tempfile
import time
from pathlib import Path

import pytest

from mtmc_engine.core.errors import WorkerDied
from mtmc_engine.system import confine, jobs
from mtmc_engine.system.isolation import isolation_checks
from mtmc_engine.system.jobs import Confinement, Ending, Limits, WarmParent
from mtmc_engine.system.processes import children_of, descendants
from mtmc_engine.system.scratch import scratch_folder
from tests.system.conftest import bare_start

pytestmark = pytest.mark.asyncio(loop_scope="session")
DEEDS, ATTACKS = "tests.system.deeds:", "tests.system.attacks:"
PROJECT = Path(__file__).parents[2]
FULL = Confinement()


@pytest.fixture
def held(plain):
    """Skips where this machine allows no namespaces: there `doctor` says what is missing."""

    async def run(job, arguments=None, confinement=FULL):
        limits = Limits(wall_s=20)
        result = await plain.run(job, arguments or {}, limits, confinement=confinement)
        if result.protections != confine.ALL:
            pytest.skip(f"this machine only allows {sorted(result.protections)}")
        return result

    return run


async def in_order(parent: WarmParent) -> None:
    """The next candidate is served; no process and no file of an earlier one is left."""
    result = await parent.run(DEEDS + "echo", {"still": "here"}, confinement=FULL)
    assert (result.ending, result.value) == (Ending.DONE, {"still": "here"})
    until = time.monotonic() + 5
    while descendants(parent.facts["pid"]) and time.monotonic() < until:
        await asyncio.sleep(0.02)
    assert not descendants(parent.facts["pid"])
    root = Path(parent.facts["root"])
    assert not list(root.iterdir())


async def test_it_can_write_to_its_own_folders_only(plain, held, tmp_path):
    home, project, journals = (tmp_path / name for name in ("home", "project", "journals"))
    for place in (home, project, journals):
        place.mkdir()
        (place / "kept").write_text("as it was")
    results = tmp_path / "results"
    results.mkdir()
    real = [str(Path.home()), str(PROJECT), tempfile.gettempdir(), "/", "/dev", "/usr"]
    before = {place: sorted(os.listdir(place)) for place in real}
    result = await held(
        ATTACKS + "writes",
        {"places": [*map(str, (home, project, journals)), *real], "writable": [str(results)]},
        confinement=Confinement(writable=(str(results),)),
    )
    assert result.unwrap() == []
    assert (results / "made").read_text() == "x"
    for place in (home, project, journals):
        assert [(file.name, file.read_text()) for file in place.iterdir()] == [
            ("kept", "as it was")
        ]
    ours = ("mtmc-", "pytest-", "made", "kept")
    for place, names in before.items():
        new = set(os.listdir(place)) - set(names)
        assert not [name for name in new if name.startswith(ours[2:])]
    await in_order(plain)


async def test_of_a_hidden_folder_it_sees_what_is_its_own(held, tmp_path):
    own, other = tmp_path / "results" / "own", tmp_path / "results" / "other"
    for folder in (own, other):
        folder.mkdir(parents=True)
        (folder / "kept").write_text("as it was")
    seen = await held(
        ATTACKS + "lists",
        {"place": str(tmp_path / "results"), "own": str(own)},
        confinement=Confinement((str(own),), (str(tmp_path / "results"),)),
    )
    assert seen.unwrap() == ["own", "own/kept", "own/made"]
    assert (own / "made").read_text() == "x"


async def test_it_sees_nothing_of_the_other_jobs_of_its_parent(plain, held):
    """Not even of those that begin after it."""
    root = Path(plain.facts["root"])
    earlier = root / "job-earlier"
    earlier.mkdir()
    (earlier / "output").write_text("what another one computed")
    try:
        seen = await held(ATTACKS + "lists_around_itself", {"root": str(root)})
    finally:
        (earlier / "output").unlink()
        earlier.rmdir()
    below, above = seen.unwrap()
    assert len(below) == 1
    assert below == above
    await in_order(plain)


async def test_of_scratch_space_it_sees_what_it_was_given(held):
    with scratch_folder() as ours, scratch_folder() as foreign:
        for name in ("given", "other"):
            (ours / name).mkdir()
            (ours / name / "output").write_text("as it was")
        (foreign / "output").write_text("what another session computed")
        given = {"names": [ours.name, foreign.name], "given": str(ours / "given")}
        given["temporary"] = str(ours.parent).lstrip("/")
        seen = await held(ATTACKS + "reads_scratch", given)
    assert seen.unwrap() == [f"{ours.name}/given/output"]


async def test_its_confinement_cannot_be_undone_from_within(held, tmp_path):
    hidden = tmp_path / "truth"
    hidden.write_text("the true values")
    result = await held(
        ATTACKS + "opens_the_disk_again",
        {"place": str(tmp_path), "hidden": str(hidden)},
        confinement=Confinement(hidden=(str(hidden),)),
    )
    assert result.unwrap() == []
    assert hidden.read_text() == "the true values"
    assert [file.name for file in tmp_path.iterdir()] == ["truth"]


async def test_secrets_of_the_user_are_not_there(monkeypatch, tmp_path):
    home = tmp_path / "home"
    secrets = [
        *(".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml"),
        *(".git-credentials", ".bash_history", ".local/share/keyrings/login"),
        ".local/state/mtmc-tui/log/engine.log",
        *(".cache/huggingface/token", "mtmc/journals/one.journal", "mtmc/config/mtmc.toml"),
    ]
    useful = [
        ".cache/torch/hub/weights.pt",
        ".local/bin/tool",
        ".config/kept/softmax.py",
        "work/a.py",
    ]
    for name in (*secrets, *useful):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("contents")
    (home / ".npmrc").symlink_to(home / "dotfile")  # a manager of dot files keeps it elsewhere
    (home / "dotfile").write_text("contents")
    secrets.append(".npmrc")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MTMC_HOME", str(home / "mtmc"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(jobs, "_START", bare_start())
    parent = WarmParent("interpret")
    given = [str(home / ".config/kept/softmax.py"), str(home)]  # paths that a job is given stay
    names = [*secrets, *useful]
    try:
        result = await parent.run(
            ATTACKS + "looks_around", {"names": names, "given": given}, confinement=FULL
        )
        if confine.SECRETS not in result.protections:
            pytest.skip("this machine has no mount namespaces")
        assert sorted(result.unwrap()) == sorted(useful)
        ours = await parent.run(ATTACKS + "looks_around", {"names": names})
        assert len(ours.unwrap()) == len(names)  # code of our own, and the user's file, may
    finally:
        await parent.close()


async def test_other_processes_are_out_of_reach(plain, held):
    warm = plain.facts["pid"]
    pids = [os.getpid(), warm, *children_of(os.getpid())]
    result = await held(ATTACKS + "attacks_processes", {"pids": pids})
    assert result.unwrap()["achieved"] == []
    assert len(result.value["sees"]) == 2  # its keeper and itself
    await in_order(plain)


async def test_no_server_can_be_reached(held):
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as agent,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        for line, address in ((agent, f"{folder}/agent"), (abstract, f"\0mtmc-{os.getpid()}")):
            line.bind(address)
            line.listen()
        arguments = {
            "port": server.getsockname()[1],
            "agent": f"{folder}/agent"[1:],  # a path that a job is given stays visible
            "abstract": f"mtmc-{os.getpid()}",
        }
        result = await held(ATTACKS + "dials_everywhere", arguments)
    assert result.unwrap() == []


@pytest.mark.parametrize(
    ("deed", "ending", "number"),
    [
        ("exits", Ending.EXITED, 0),
        ("aborts", Ending.SIGNAL, signal.SIGABRT),
        ("segfaults", Ending.SIGNAL, signal.SIGSEGV),
        ("raises", Ending.RAISED, 0),
        ("hangs", Ending.TIMEOUT, 0),
        ("sys_exits", Ending.RAISED, 0),
        ("kills_its_parent", Ending.TIMEOUT, 0),  # the signal does not arrive
    ],
)
async def test_bad_ends_are_told_as_without_confinement(plain, deed, ending, number):
    wall_s = 0.5 if ending is Ending.TIMEOUT else 20
    result = await plain.run(DEEDS + deed, {"code": 7}, Limits(wall_s=wall_s), confinement=FULL)
    if confine.PROCESSES in result.protections or deed != "kills_its_parent":
        assert (result.ending, result.signal) == (ending, number)
    await in_order(plain)


async def test_a_fork_bomb_ends_and_nothing_of_it_is_left(plain):
    limits = Limits(wall_s=30, processes=100)
    result = await plain.run(ATTACKS + "forks", {"rounds": 8}, limits, confinement=FULL)
    assert result.ending is Ending.PROCESSES
    assert "100 processes" in result.error
    assert result.seconds < 30
    await in_order(plain)


async def test_forks_share_their_memory(workshop):
    """Many forks of a large process are not taken for much memory."""
    limits = Limits(wall_s=1.5, memory_mb=900, processes=150)
    result = await workshop.device.run(ATTACKS + "forks", {"rounds": 4}, limits, confinement=FULL)
    assert result.ending is Ending.TIMEOUT


@pytest.mark.parametrize("how", ["many", "one", "nameless", "memory"])
async def test_the_disk_cannot_be_filled(plain, tmp_path, how):
    limits = Limits(wall_s=30, disk_mb=48)
    result = await plain.run(
        ATTACKS + "fills_the_disk",
        {"folder": str(tmp_path), "how": how},
        limits,
        confinement=Confinement(writable=(str(tmp_path),)),
    )
    assert result.ending is Ending.DISK or "File too large" in result.error
    used = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert used < 600 << 20
    await in_order(plain)


async def test_a_gigabyte_of_prints_is_read_and_only_its_tail_kept(plain):
    limits = Limits(wall_s=30, output_kb=16)
    result = await plain.run(
        ATTACKS + "prints_gigabytes", {"megabytes": 1100}, limits, confinement=FULL
    )
    assert result.ending is Ending.DONE
    assert result.output.endswith("the end\n")
    assert len(result.output) <= 16 * 1024


async def test_a_daemon_ends_with_its_job(plain, tmp_path):
    result = await plain.run(
        ATTACKS + "leaves_a_daemon",
        {"folder": str(tmp_path)},
        Limits(wall_s=20),
        confinement=Confinement(writable=(str(tmp_path),)),
    )
    assert result.unwrap() == "left"
    await in_order(plain)


async def test_traps_in_the_results_are_taken_away(plain, tmp_path):
    result = await plain.run(
        ATTACKS + "leaves_traps",
        {"folder": str(tmp_path)},
        confinement=Confinement(writable=(str(tmp_path),)),
    )
    assert result.ending is Ending.DONE
    assert sorted(file.name for file in tmp_path.iterdir()) == ["closed", "fine"]
    assert (tmp_path / "closed" / "inside").is_file()
    await in_order(plain)


async def test_what_cannot_be_shut_in_is_not_run(plain, tmp_path):
    missing = Confinement(writable=(str(tmp_path / "missing"),))
    await plain.run(DEEDS + "echo", {})
    if confine.DISK not in (await plain.run(DEEDS + "echo", {}, confinement=FULL)).protections:
        pytest.skip("this machine has no mount namespaces")
    with pytest.raises(WorkerDied, match="could not be shut in"):
        await plain.run(DEEDS + "echo", {}, confinement=missing)
    await in_order(plain)


REFUSING = """
from mtmc_engine.system import kernel
def refuse(*flags): raise PermissionError(1, "not permitted")
kernel.unshare = refuse
main("""


async def test_where_the_kernel_refuses_jobs_still_run_and_the_doctor_says_so(monkeypatch):
    before, _, after = bare_start().rpartition("main(")
    monkeypatch.setattr(jobs, "_START", f"{before}\n{REFUSING}{after}")
    parent = WarmParent("device")
    try:
        result = await parent.run(DEEDS + "echo", {"a": 1}, confinement=FULL)
        assert (result.value, result.protections) == ({"a": 1}, frozenset())
        bomb = await parent.run(
            ATTACKS + "forks", {"rounds": 8}, Limits(wall_s=20, processes=100), confinement=FULL
        )
        assert bomb.ending is Ending.PROCESSES
        await in_order(parent)
        checks = {check.name: check for check in await isolation_checks(parent)}
        for name in ("network", "processes", "disk", "secrets"):
            check = checks[f"isolation: {name}"]
            assert not check.ok
            assert check.advice
        for name in ("folder", "memory", "fork bombs"):
            assert checks[f"isolation: {name}"].ok
    finally:
        await parent.close()


@pytest.mark.usefixtures("bare")
async def test_confinement_can_be_switched_off():
    parent = WarmParent("device", confine=False)
    try:
        result = await parent.run(DEEDS + "echo", {}, confinement=FULL)
        assert result.protections <= {confine.NETWORK}
    finally:
        await parent.close()


async def test_no_number_is_lost_on_the_way(plain):
    seen = []
    nan = {"nan": float("nan")}
    result = await plain.run(ATTACKS + "numbers", nan, progress=seen.append)
    assert math.isnan(result.value["nan"])
    assert math.isnan(result.value["given"])
    assert math.isnan(seen[0]["nan"])
    assert result.value["inf"] == [math.inf, -math.inf]

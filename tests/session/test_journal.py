"""The journal: durable, refused where it is not one, one writer."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import (
    CandidateReady,
    Decided,
    NodeAdded,
    Notice,
    SessionStarted,
    TaskOpened,
    VerdictReached,
)
from mtmc_engine.core.measurement import Contestant, Measurement
from mtmc_engine.core.program import Group, Library, Program, Schedule, Templated
from mtmc_engine.core.verdict import Class, Verdict
from mtmc_engine.session.catalogue import find_session, list_sessions
from mtmc_engine.session.journal import SUFFIX, Journal

LOWER = Action("lower", "lower r1", "r1")
OPENED = TaskOpened(
    "softmax", "Model", ("8x64",), ("float32",), "H200", False, True, (), "import torch\n"
)


def program(text="pass\n"):
    groups = (
        Group("r1", ("softmax",), Templated("rows", {"block": 64, "flag": True, "form": "x"})),
        Group("", ("view",), Library()),
    )
    return Program(text, Schedule(groups))


def original(state="kept"):
    return NodeAdded("n0", None, None, state, "pass\n", "0" * 12)


def candidate(node="n1", source="pass\n"):
    return CandidateReady(node, "n0", source, "", "builtin", 0.1)


@pytest.fixture
def journal(tmp_path):
    journal = Journal.create(tmp_path, "softmax")
    journal.write(OPENED)
    yield journal
    journal.close()


def test_name_is_readable(journal):
    stem, day, minute, tail = journal.session.rsplit("-", 3)
    assert stem == "softmax"
    assert len(day) == 8
    assert len(minute) == 4
    assert len(tail) == 4


def test_uses_the_write_ahead_log(journal):
    assert (journal.path.parent / f"{journal.path.name}-wal").exists()


def test_file_system_without_shared_memory(tmp_path):
    journal = Journal.create(tmp_path, "softmax", vfs="unix-none")
    journal.write(Notice("info", "here"))
    journal.close()
    assert not list(tmp_path.glob("*-wal"))
    again = Journal.reopen(journal.path)
    assert again.events() == [Notice("info", "here")]
    again.close()


def test_events_and_programs_come_back(journal):
    decided = Decided("n1", 1, LOWER, "approve", "user", "nice")
    journal.write(original(), program=program())
    journal.write(candidate(), program=program("x = 1\n"))
    journal.write(decided)
    reader = Journal.read(journal.path)
    assert reader.events() == [OPENED, original(), candidate(), decided]
    assert reader.program("n1") == program("x = 1\n")
    assert reader.program("n2") is None
    assert reader.decided_steps() == 1
    reader.close()


def test_samples_of_a_measurement_are_kept(journal):
    contestants = (Contestant("candidate", 10.0, (9.5, 10.0, 10.5)), Contestant("eager", 20.0))
    measurement = Measurement("measured", 10.0, {}, 5.0, "events", contestants)
    journal.write(candidate(), program=program())
    verdict = Verdict(Class.FASTER, "good", measurement=measurement)
    journal.write(VerdictReached("n1", verdict))
    rows = (
        sqlite3.connect(journal.path)
        .execute("select contestant, time_us, samples_us from samples order by time_us")
        .fetchall()
    )
    assert rows == [("candidate", 10.0, "[9.5,10.0,10.5]"), ("eager", 20.0, "[]")]
    assert journal.verdict("n1") == verdict


def test_another_source_makes_the_verdict_void(journal):
    journal.write(candidate(), program=program())
    journal.write(VerdictReached("n1", Verdict(Class.UNTIMED, "fine")))
    journal.write(candidate(source="y = 2\n"), program=program("y = 2\n"))
    assert journal.verdict("n1") is None
    assert journal.program("n1") == program("y = 2\n")


def test_each_opened_task_has_its_own_tree(journal):
    journal.write(original(), program=program("first\n"))
    journal.write(OPENED)
    assert journal.program("n0") is None
    journal.write(original(), program=program("second\n"))
    journal.close()
    again = Journal.reopen(journal.path)
    assert again.program("n0") == program("second\n")
    again.close()


def test_events_of_one_call_are_all_stored_or_none(journal):
    class Unstorable:
        __struct_config__ = Notice.__struct_config__

    with pytest.raises(TypeError):
        journal.write(Notice("info", "first"), Unstorable())
    assert journal.events() == [OPENED]


def test_one_writer(journal, monkeypatch):
    monkeypatch.setattr("mtmc_engine.session.locks.PATIENCE_S", 0.1)
    with pytest.raises(UsageError, match="still running"):
        Journal.reopen(journal.path)
    assert list_sessions(journal.path.parent)[0].state == "running"
    journal.close()
    Journal.reopen(journal.path).close()


def test_discarded_session_leaves_nothing(journal):
    journal.discard()
    assert list(journal.path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not a database at all, but long enough to be looked at " * 40, "cannot be read"),
        (b"", "is not a journal of mtmc"),
    ],
)
def test_foreign_file(tmp_path, content, said):
    path = tmp_path / f"x{SUFFIX}"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        Journal.reopen(path)
    entry = list_sessions(tmp_path)[0]
    assert entry.state == "unreadable"
    assert said in entry.problem
    assert "\n" not in entry.problem


def test_another_database(tmp_path):
    path = tmp_path / f"x{SUFFIX}"
    connection = sqlite3.connect(path)
    connection.execute("create table events (a)")
    connection.commit()
    with pytest.raises(UsageError, match="is not a journal of mtmc"):
        Journal.read(path)


def test_another_version(journal):
    journal.close()
    connection = sqlite3.connect(journal.path)
    connection.execute("pragma user_version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(UsageError, match="format 99"):
        Journal.reopen(journal.path)


def test_torn_file(journal):
    for number in range(50):
        journal.write(Notice("info", f"{number} " + "x" * 2000))
    journal.close()
    data = journal.path.read_bytes()
    journal.path.write_bytes(data[: len(data) // 2])
    with pytest.raises(UsageError, match="cannot be read"):
        Journal.reopen(journal.path).events()


def test_damaged_contents_are_said(journal):
    """Whatever bytes are wrong, what is read has its form or is refused in one sentence."""
    for number in range(20):
        journal.write(Notice("info", f"{number} " + "é" * 300), facts={f"fact {number}": "ü" * 90})
    path, was = journal.path, journal.events()
    journal.close()
    data, refused = path.read_bytes(), 0
    for seed in range(60):
        draw = random.Random(seed)
        damaged = bytearray(data)
        for _ in range(40):
            damaged[draw.randrange(100, len(data))] = draw.randrange(256)
        path.write_bytes(damaged)
        try:
            again = Journal.read(path)
            assert isinstance(again.fact("fact 7"), str | None)
            assert len(again.events()) <= len(was)
        except UsageError:
            refused += 1
    assert refused > 30


def test_event_of_an_unknown_kind(journal):
    journal._connection.execute(
        "insert into events (at, kind, body) values (0, 'x', '{\"event\": \"dream\"}')"
    )
    with pytest.raises(UsageError, match="cannot be read"):
        journal.events()


def test_missing_journal_is_not_made(tmp_path):
    with pytest.raises(UsageError):
        Journal.read(tmp_path / f"none{SUFFIX}")
    assert list(tmp_path.glob(f"*{SUFFIX}")) == []


def test_find_session_by_its_beginning(tmp_path):
    one, two = Journal.create(tmp_path, "softmax"), Journal.create(tmp_path, "gelu")
    assert find_session(tmp_path, "gelu") == two.path
    assert find_session(tmp_path, one.session) == one.path
    with pytest.raises(UsageError, match="There is no session 'x'"):
        find_session(tmp_path, "x")
    third = Journal.create(tmp_path, "gelu")
    with pytest.raises(UsageError, match="Several sessions begin with 'gelu'"):
        find_session(tmp_path, "gelu")
    for journal in (one, two, third):
        journal.close()


WRITER = """
import sys
from pathlib import Path
from mtmc_engine.core.events import Notice
from mtmc_engine.session.journal import Journal

journal = Journal.create(Path(sys.argv[1]), "softmax")
number = 0
while True:
    journal.write(Notice("info", str(number)))
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
    number += 1
"""


@pytest.mark.parametrize("lines", [1, 40, 250])
def test_what_was_said_before_sigkill_is_stored(tmp_path, lines):
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)], stdout=subprocess.PIPE
    )
    for _ in range(lines):
        writer.stdout.readline()
    os.kill(writer.pid, signal.SIGKILL)
    said = lines + len(writer.stdout.read().split(b"\n")) - 1
    writer.wait()
    journal = Journal.reopen(next(tmp_path.glob(f"*{SUFFIX}")))
    stored = [event.text for event in journal.events()]
    journal.close()
    assert stored[:said] == [str(number) for number in range(said)]
    assert len(stored) - said in (0, 1)


def test_elapsed_time_leaves_out_the_pauses_between_runs(journal, monkeypatch):
    started = SessionStarted("s", "f", "j", "p", "c", "t", 8)
    journal = Journal.create(journal.path.parent, "timed")
    for event, at in (
        (started, 1000.0),
        (OPENED, 1030.0),
        (started, 9000.0),
        (Notice("info", "on"), 9012.5),
    ):
        monkeypatch.setattr("mtmc_engine.session.journal.time.time", lambda at=at: at)
        journal.write(event)
    assert journal.elapsed_s() == 42.5
    journal.close()

"""The plain and the json display as processes: output, answers, interruption."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mtmc_tui.client import engine_environment

OPERATOR = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(torch.softmax(x, dim=-1) * 2.0 + 1.0)


def get_inputs():
    return [torch.randn(8, 64)]


def get_init_inputs():
    return []
"""
COMMAND = [sys.executable, "-m", "mtmc_tui.cli"]

slow = pytest.mark.slow


@pytest.fixture
def place(tmp_path):
    (tmp_path / "op.py").write_text(OPERATOR)
    return tmp_path


def environment(place, **more):
    home = {"MTMC_HOME": str(place / "home"), "OMP_NUM_THREADS": "1"}
    return {**engine_environment(), **home, **more}


def started(place, *arguments, **streams):
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*COMMAND, "op.py", "--planner", "roofline", *arguments],
        cwd=place,
        env=environment(place),
        **{**given, **streams},
    )


def finished(place, *arguments, answers=b"", timeout=120):
    process = started(place, *arguments, stdin=subprocess.PIPE)
    out, err = process.communicate(answers, timeout)
    return process.returncode, out.decode(), err.decode()


def test_help_is_quick():
    started_at = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, "--help"], env=engine_environment(), capture_output=True, text=True, check=True
    )
    elapsed = time.perf_counter() - started_at
    for option in ("--display", "--yes", "--until", "--planner", "--resume", "check", "doctor"):
        assert option in done.stdout
    assert elapsed < 1  # 0.2 s on an idle machine


def test_command_line_imports_nothing_heavy():
    code = (
        "import sys, mtmc_tui.cli, mtmc_tui.client, mtmc_tui.displays.plain, mtmc_tui.documents\n"
        "heavy = {'textual', 'torch', 'triton', 'numpy', 'openai', 'llama_cpp', 'watchfiles'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=engine_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@slow
def test_json_is_one_object_a_line(place):
    code, out, err = finished(place, "--json", "--yes", "--steps", "1")
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert events[0]["event"] == "session_started"
    last = events[-1]
    assert last["event"] == "session_finished"
    assert last["export"] is None
    (step,) = last["steps"]
    assert step["time_kind"] == "estimated"
    assert step["approved"] is True
    assert last["best"]["actions"] == [step["phrase"]]
    assert err == ""


@slow
def test_json_reads_decisions(place):
    decide = b'{"command": "decide", "choice": "%s"}\n'
    answers = decide % b"reject" + b"nonsense\n" + decide % b"stop"
    code, out, _ = finished(place, "--json", answers=answers)
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert any(e["event"] == "notice" and "not a command" in e["text"] for e in events)
    assert events[-1]["stopped_by"] == "user"


@slow
@pytest.mark.parametrize("display", ["json", "plain"])
def test_nobody_to_decide(place, display):
    code, out, err = finished(place, "--display", display)
    assert code == 3
    if display == "json":
        assert json.loads(out.splitlines()[-1])["exit_code"] == 3
    else:
        assert "--yes" in err
        assert len(err.splitlines()) == 1


@slow
def test_plain_is_readable_and_exports(place):
    code, out, err = finished(place, "--yes", "--export", "answer")
    assert code == 0, err
    assert err == ""
    assert "\x1b" not in out
    assert re.search(r"^best n\d: \d\.\d\dx the original, [\d.]+ us estimated", out, re.M)
    assert (place / "answer" / "op_mtmc.py").exists()
    assert f"exported to {place / 'answer'}" in out


@slow
def test_document_commands_after_a_run(place):
    finished(place, "--yes", "--steps", "1")

    def run(*arguments):
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=place,
            env=environment(place),
            capture_output=True,
            text=True,
            check=False,
        )

    (entry,) = json.loads(run("sessions", "--json").stdout)
    assert entry["steps"] == 1
    assert entry["session"] in run("sessions").stdout
    done = run("export", entry["session"], "later", "--json")
    assert done.returncode == 0
    assert "op_mtmc.py" in json.loads(done.stdout)["files"]
    assert (place / "later" / "op_mtmc.py").exists()
    (place / "op.py").write_text(OPERATOR + "\nEXTRA = 1\n")
    changed = run("export", entry["session"], "again")
    assert changed.returncode == 2
    assert "has changed" in changed.stderr


@slow
def test_check_judges(place):
    finished(place, "--yes", "--steps", "1", "--export", "answer")
    good = (place / "answer" / "op_mtmc.py").read_text()
    (place / "good.py").write_text(good)
    (place / "wrong.py").write_text(
        "from op import Model\n\nclass ModelNew(Model):\n"
        "    def forward(self, x):\n        return x * 0\n"
    )
    for name, code in (("good.py", 0), ("wrong.py", 1)):
        done = subprocess.run(
            [*COMMAND, "check", "op.py", name, "--json"],
            cwd=place,
            env=environment(place),
            capture_output=True,
            text=True,
            check=False,
        )
        report = json.loads(done.stdout)
        assert done.returncode == code, report["reason"]
        assert list(report) == [
            *("verdict", "accepted", "reason", "evidence", "gates", "warnings", "measurement")
        ]
        assert report["accepted"] is (code == 0)
    assert report["verdict"] == "NUMERIC"


def children_of(pid):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found += [int(entry.name), *children_of(int(entry.name))]
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@slow
@pytest.mark.parametrize("display", ["plain", "json"])
@pytest.mark.parametrize(
    ("moment", "number", "code"),
    [
        ("session", signal.SIGINT, 130),
        ("values", signal.SIGINT, 130),
        ("values", signal.SIGTERM, 143),
        ("values", signal.SIGHUP, 129),
    ],
)
def test_interruption(place, display, moment, number, code):
    """Within a second, with all children gone, and the session can go on."""
    words = {"session": {"plain": b"session ", "json": b"session_started"}}
    words["values"] = {"plain": b"launch ok", "json": b'"gate":"values"'}
    process = started(place, "--yes", "--display", display)
    for line in process.stdout:
        if words[moment][display] in line:
            break
    children = children_of(process.pid)
    asked_at = time.perf_counter()
    process.send_signal(number)
    assert process.wait(5) == code
    assert time.perf_counter() - asked_at < 1.2
    deadline = time.perf_counter() + 1
    while any(map(is_alive, children)) and time.perf_counter() < deadline:
        time.sleep(0.02)
    assert [pid for pid in children if is_alive(pid)] == []
    said = process.stderr.read()
    assert len(said.splitlines()) == 1
    lines = process.stdout.read().splitlines()
    if display == "json":
        last = json.loads(lines[-1])
        assert last["event"] == ("failed" if moment == "session" else "session_finished")
        assert last["exit_code"] == code
    if moment == "session":
        assert b"nothing to go on with" in said
    else:
        assert b"--resume" in said
        again, out, err = finished(place, "--yes", "--resume", "--json", "--steps", "1")
        assert again == 0, err
        events = [json.loads(line) for line in out.splitlines()]
        assert [e for e in events if e["event"] == "step_started"] == []
        assert events[-1]["steps"][0]["approved"]


@slow
def test_a_reader_that_leaves_ends_the_run(place):
    process = started(place, "--yes", "--json")
    process.stdout.readline()
    children = children_of(process.pid)
    process.stdout.close()
    process.wait(20)
    assert b"Traceback" not in process.stderr.read()
    assert [pid for pid in children if is_alive(pid)] == []


@slow
def test_a_killed_screen_takes_its_engine_along(place):
    process = started(place, "--yes", "--json")
    for line in process.stdout:
        if b"candidate_ready" in line:
            break
    children = children_of(process.pid)
    process.kill()
    process.wait()
    deadline = time.perf_counter() + 10
    while any(map(is_alive, children)) and time.perf_counter() < deadline:
        time.sleep(0.1)
    assert [pid for pid in children if is_alive(pid)] == []


def test_damaged_journal_is_one_sentence(place):
    journals = place / "home" / "journals"
    journals.mkdir(parents=True)
    (journals / "op-20261130-1742-ab12.mtmc.db").write_bytes(b"SQLite format 3\0" + b"x" * 4000)
    done = subprocess.run(
        [*COMMAND, "export", "op-2026", "out"],
        cwd=place,
        env=environment(place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "cannot be read" in done.stderr


class Terminal:
    """A run of the plain display in a terminal of its own."""

    def __init__(self, place, **more):
        master, slave = pty.openpty()
        self.master = master
        self.text = ""
        self.process = subprocess.Popen(
            [*COMMAND, "op.py", "--planner", "roofline", "--display", "plain"],
            cwd=place,
            env=environment(place, TERM="xterm", **more),
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def wait_for(self, words, patience_s=60):
        """Read on until the words appear after what was read before."""
        begin = len(self.text)
        deadline = time.perf_counter() + patience_s
        while words not in self.text[begin:]:
            assert time.perf_counter() < deadline, self.text
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode(errors="replace")
                except OSError:
                    break
        assert words in self.text[begin:], self.text

    def type(self, text):
        os.write(self.master, text.encode())


@slow
def test_letters_answer_on_a_terminal(place):
    editor = place / "edit.sh"
    editor.write_text("#!/bin/sh\necho 'ASIDE = 1' >> \"$1\"\n")
    editor.chmod(0o755)
    terminal = Terminal(place, VISUAL=str(editor))
    terminal.wait_for("[a]pprove")
    terminal.type("z\n")
    terminal.wait_for("no answer")
    terminal.type("e\n")
    terminal.wait_for("[a]pprove")
    terminal.type("a good enough\n")
    terminal.wait_for("approve by user: good enough")
    terminal.type("S\n")
    terminal.wait_for("best n2")
    assert terminal.process.wait(10) == 0
    assert "\x1b[" in terminal.text

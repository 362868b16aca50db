"""Values that nobody can mean, and runs that cannot go on: one sentence and the exit code."""

import fcntl
import json
import os
import subprocess
import sys
import time

import pytest

from mtmc_tui.client import engine_environment

COMMAND = [sys.executable, "-m", "mtmc_tui.cli"]
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
RUN = ["op.py", "--yes", "--display", "plain"]
NUMBERS = {
    "--seed": ("-1", "18446744073709551616", "nan", "1.5", "1e3", "9" * 5000),
    "--steps": ("0", "-3", "1.5", "inf", "9" * 30),
    "--until": ("nan", "inf", "-1", "0", "1", "0.5x", "9" * 30, "1e400"),
    "--samples": ("0", "17", "2.5"),
    "--budget-tokens": ("0", "-1", "9" * 30, "nan"),
    "--budget-usd": ("0", "-1", "nan", "inf", "1e400"),
    "--budget-seconds": ("0", "-1", "nan", "inf"),
}
BENCH = {"--budget": ("nan", "inf", "0", "-1"), "--jobs": ("0", "-1", "9" * 30, "1.5")}
CASES = [
    *[([*RUN, name, value], [name]) for name, values in NUMBERS.items() for value in values],
    *[(["bench", ".", name, value], [name]) for name, values in BENCH.items() for value in values],
    (["check", "op.py", "op.py", "--seed", "-1"], ["--seed"]),
    *[
        ([*RUN, name, value], [name, "empty"])
        for name in ("--planner", "--coder", "--target", "--export", "--theme")
        for value in ("", " ")
    ],
    ([*RUN, "--theme", "nope"], ["nope", "did you mean"]),
    ([*RUN, "--theme", "mtmc-drak"], ["mtmc-dark"]),
    (["op.py", "--yes", "--json", "--theme", "mtmc-drak"], ["mtmc-dark"]),
]
IN_THE_ENGINE = [
    ([*RUN, "--planner", "llama:"], ["llama:FILE.gguf"]),
    ([*RUN, "--planner", "llama:folder"], ["folder", "directory"]),
    (["", "--yes", "--display", "plain"], ["empty"]),
    (["pipe.py", "--yes", "--display", "plain"], ["pipe.py", "pipe"]),
    (["check", "op.py", ""], ["empty"]),
    (["check", "op.py", "folder"], ["folder", "directory"]),
    (["check", "op.py", "pipe.py"], ["pipe.py", "pipe"]),
    (["bench", ""], ["empty"]),
]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "op.py").write_text(OPERATOR)
    (tmp_path / "bad.py").write_text("def kernel(x:\n    pass\n")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    return tmp_path


def environment(place):
    return {**engine_environment(), "MTMC_HOME": str(place / "home"), "OMP_NUM_THREADS": "1"}


def command(place, *arguments, stdin=subprocess.DEVNULL):
    return subprocess.run(
        [*COMMAND, *arguments], cwd=place, env=environment(place), stdin=stdin,
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def assert_refused(done, words):
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert all(word in line for word in words), line
    assert done.stdout == ""


def test_the_command_line_refuses(place):
    from mtmc_tui.cli import run

    for arguments, words in CASES:
        done = subprocess.CompletedProcess(arguments, *captured(run, arguments))
        assert_refused(done, words)


def captured(run, arguments):
    """Exit code, standard output and standard error of one command line in this process."""
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    return code, out.getvalue(), err.getvalue()


def test_the_real_command_refuses(place):
    assert_refused(command(place, *RUN, "--seed", "18446744073709551616"), ["--seed"])


@pytest.mark.parametrize(("arguments", "words"), IN_THE_ENGINE, ids=str)
def test_the_engine_refuses(place, arguments, words):
    assert_refused(command(place, *arguments), words)


def test_a_candidate_that_is_no_python_is_answered_without_workers(place):
    began = time.perf_counter()
    done = command(place, "check", "op.py", "bad.py", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert (report["verdict"], report["accepted"]) == ("SYNTAX", False)
    assert report["evidence"]["line"] == 1
    # 0.6 s on an idle machine, where opening the reference takes ten times that.
    assert time.perf_counter() - began < 10


@pytest.mark.slow
def test_what_ends_a_run_midway_is_said_in_both_places(place):
    """The file changes while a policy decides: exit 2, on standard error and in the last line."""
    process = subprocess.Popen(
        [*COMMAND, "op.py", "--yes", "--json", "--planner", "roofline"], cwd=place,
        env=environment(place), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "step_started" in line:
            (place / "op.py").write_text(OPERATOR + "\nEXTRA = 1\n")
    assert process.wait(60) == 2
    (sentence,) = process.stderr.read().splitlines()
    assert "changed since it was opened" in sentence
    last = json.loads(lines[-1])
    assert (last["event"], last["exit_code"]) == ("session_finished", 2)


@pytest.mark.slow
@pytest.mark.parametrize("display", ["json", "plain"])
def test_a_reader_that_stalls_keeps_no_signal_waiting(place, display):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * 4096)  # full before the first event
    process = subprocess.Popen(
        [*COMMAND, "op.py", "--yes", "--display", display, "--planner", "roofline"], cwd=place,
        env=environment(place), stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(writer)
    time.sleep(4)
    process.terminate()
    assert process.wait(10) == 143
    assert b"Stopped" in process.stderr.read()
    os.close(reader)


def test_a_full_disk_is_one_sentence(place):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "nothing.py", "--json"], cwd=place, env=environment(place),
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "Standard output cannot be written" in line

"""Every mistake of a user: its exit code, one sentence, no traceback."""

import json
import struct
import subprocess
import sys

import pytest

from mtmc_tui.client import engine_environment

GOOD = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""
LFS_POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 98362432\n"
)


def gguf(architecture):
    """A GGUF file with one metadata entry and no tensor."""
    key, value = b"general.architecture", architecture.encode()
    header = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<I", 8)
    return header + entry + struct.pack("<Q", len(value)) + value


@pytest.fixture
def place(tmp_path):
    (tmp_path / "op.py").write_text(GOOD)
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "broken.py").write_text("import torch\n\ndef f(x:\n    return x\n")
    (tmp_path / "binary.py").write_bytes(b"\x80\x81\x82")
    (tmp_path / "pointer.gguf").write_text(LFS_POINTER)
    (tmp_path / "cut.gguf").write_bytes(gguf("llama")[:30])
    (tmp_path / "strange.gguf").write_bytes(gguf("teapot"))
    (tmp_path / "plain").write_text("a file, not a folder\n")
    return tmp_path


def command(place, *arguments):
    environment = {**engine_environment(), "MTMC_HOME": str(place / "home"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "mtmc_tui.cli", *arguments],
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


CASES = {
    "missing file": (["nothing.py"], ["no file nothing.py"]),
    "a directory": (["."], ["directory"]),
    "not Python": (["notes.txt"], ["notes.txt", "not a Python file"]),
    "not text": (["binary.py"], ["binary.py", "not"]),
    "syntax error": (["broken.py"], ["broken.py:3", "syntax error"]),
    "unknown planner": (["op.py", "--planner", "rooflin"], ["rooflin", "'roofline'"]),
    "unknown coder": (["op.py", "--coder", "bultin"], ["bultin", "'builtin'"]),
    "unknown target": (["op.py", "--target", "sm_91"], ["sm_91", "sm_90"]),
    "missing model": (["op.py", "--planner", "llama:none.gguf"], ["none.gguf"]),
    "LFS pointer": (["op.py", "--planner", "llama:pointer.gguf"], ["pointer.gguf", "LFS"]),
    "truncated model": (["op.py", "--planner", "llama:cut.gguf"], ["cut.gguf"]),
    "unknown architecture": (["op.py", "--planner", "llama:strange.gguf"], ["teapot"]),
    "export into a file": (["op.py", "--export", "plain/x"], ["plain/x", "--export"]),
    "export into /proc": (["op.py", "--export", "/proc/x"], ["/proc/x", "--export"]),
}
BEFORE_THE_ENGINE = {
    "unknown display": (["op.py", "--display", "jsno"], ["jsno", "json"]),
    "unknown option": (["op.py", "--stesp", "3"], ["--stesp", "--steps"]),
    "no file": ([], ["mtmc-tui FILE"]),
    "two files": (["op.py", "other.py"], ["other.py"]),
    "steps that are no number": (["op.py", "--steps", "many"], ["--steps", "many"]),
    "no steps": (["op.py", "--steps", "0"], ["--steps 0"]),
    "until that is no ratio": (["op.py", "--until", "fast"], ["--until", "fast", "1.5x"]),
    "no samples": (["op.py", "--samples", "0"], ["--samples 0", "16"]),
    "a budget of nothing": (["op.py", "--budget-usd", "0"], ["--budget-usd", "above 0"]),
    "a budget without end": (["op.py", "--budget-seconds", "inf"], ["--budget-seconds", "above 0"]),
    "nobody to read": (["op.py", "--yes", "--read-prompts"], ["--read-prompts", "--yes"]),
    "until nothing": (["op.py", "--until", "0"], ["--until"]),
    "two displays": (["op.py", "--json", "--display", "plain"], ["--json", "plain"]),
    "missing value": (["op.py", "--planner"], ["--planner"]),
    "a screen without a terminal": (["op.py", "--display", "tui"], ["terminal", "plain"]),
    "a mistyped command": (["chek", "op.py", "x.py"], ["no command chek", "did you mean check"]),
    "a name that is no text": (["\udcff.py"], ["not UTF-8"]),
    "check without candidate": (["check", "op.py"], ["CANDIDATE"]),
    "unknown theme": (["op.py", "--display", "tui", "--theme", "mtmc-drak"], ["mtmc-dark"]),
}
DOCUMENTS = {
    "no session": (["export", "none", "out"], ["none", "mtmc-tui sessions"]),
    "check of nothing": (["check", "nothing.py", "op.py"], ["no file nothing.py"]),
    "check with nothing": (["check", "op.py", "nothing.py"], ["no file nothing.py"]),
    "check with a directory": (["check", "op.py", "."], ["directory"]),
    "check for nothing": (["check", "op.py", "op.py", "--target", "sm_91"], ["sm_91", "sm_90"]),
}


def parametrised(table):
    return pytest.mark.parametrize(("arguments", "words"), table.values(), ids=table.keys())


def assert_one_sentence(done, words):
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0]


@parametrised(CASES)
def test_plain(place, arguments, words):
    done = command(place, *arguments, "--yes")
    assert_one_sentence(done, words)
    assert done.stdout == ""


@parametrised(CASES)
def test_json(place, arguments, words):
    done = command(place, *arguments, "--yes", "--json")
    assert_one_sentence(done, words)
    (line,) = done.stdout.splitlines()
    event = json.loads(line)
    assert event["event"] == "failed"
    assert event["exit_code"] == 2
    assert event["text"] == done.stderr.strip()


@parametrised(BEFORE_THE_ENGINE)
def test_command_line(place, arguments, words):
    done = command(place, *arguments)
    assert_one_sentence(done, words)
    assert done.stdout == ""


@parametrised(DOCUMENTS)
def test_document(place, arguments, words):
    done = command(place, *arguments)
    assert_one_sentence(done, words)
    assert done.stdout == ""


def test_mistakes_leave_no_journal(place):
    command(place, "broken.py", "--yes")
    assert not list((place / "home").rglob("*.db"))


BAD_REFERENCES = {
    "no reference": (
        "import torch\n\ndef something(x):\n    return x\n",
        ["Model", "get_inputs", "inputs"],
    ),
    "inputs that cannot be built": (
        GOOD.replace("torch.randn(4, 8)", "torch.randn(4, -8)"),
        ["get_inputs", "op.py:"],
    ),
    "a constructor that fails": (
        GOOD.replace("return []", "return [3]"),
        ["Model"],
    ),
    "a reference that fails": (
        GOOD.replace("torch.relu(x)", "torch.relu(x) + torch.ones(3)"),
        ["op.py:7"],
    ),
    "a module that is missing": ("import einopsy\n" + GOOD, ["einopsy"]),
    "an unknown key of TASK": (GOOD + "\nTASK = {'shaps': []}\n", ["shaps", "shapes"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("display", ["plain", "json"])
@parametrised(BAD_REFERENCES)
def test_reference(place, arguments, words, display):
    (place / "op.py").write_text(arguments)
    done = command(place, "op.py", "--yes", "--planner", "roofline", "--display", display)
    assert_one_sentence(done, words)
    if display == "json":
        last = json.loads(done.stdout.splitlines()[-1])
        assert last["event"] == "failed"
        assert last["exit_code"] == 2
    assert not list((place / "home").rglob("*.db"))


@pytest.mark.slow
@parametrised(BAD_REFERENCES)
def test_check_of_reference(place, arguments, words):
    (place / "op.py").write_text(arguments)
    (place / "candidate.py").write_text("class ModelNew: pass\n")
    done = command(place, "check", "op.py", "candidate.py", "--json")
    assert done.returncode == 2
    report = json.loads(done.stdout)
    assert report["verdict"] == "REFERENCE_ERROR"
    assert report["evidence"]["file"] == "op.py"
    assert not report["accepted"]
    for word in words:
        assert word in report["reason"]
    assert "Traceback" not in done.stderr

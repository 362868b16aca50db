"""The command: real walks on a CPU, kills, budgets and tasks that cannot be opened."""

import subprocess
import sys
import time

import pytest

from tests.bench.conftest import ROOT, lines_of


def ended(process, patience_s=240):
    out, err = process.communicate(timeout=patience_s)
    return process.returncode, out, err


def wait_for_line(path, process, patience_s=200):
    """Until the file of results has a line."""
    until = time.monotonic() + patience_s
    while not (path.exists() and path.read_bytes().endswith(b"\n")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.slow
def test_a_folder_is_walked_and_every_task_leaves_a_line(folder, begin, tmp_path):
    results = tmp_path / "lines.jsonl"
    code, out, err = ended(begin(folder, "--json", results, "--jobs", 2))
    assert code == 0, err
    found = {line["task"]: line for line in lines_of(results)}
    assert set(found) == {"tasks/broken", "tasks/norm_softmax", "tasks/pointwise_scale"}
    broken = found["tasks/broken"]
    assert broken["verdict"] == "FAILED"
    assert "a_package_that_nobody_has" in broken["reason"]
    assert not broken["proven"]
    for name in ("tasks/norm_softmax", "tasks/pointwise_scale"):
        line = found[name]
        assert line["proven"], line
        assert line["time_kind"] == "estimated"
        assert line["missing"] == []
        assert {"capture", "plan"} <= set(line["phases"])
        assert line["peak_bytes"] is None
    assert found["tasks/pointwise_scale"]["verdict"] == "UNTIMED"
    assert found["tasks/pointwise_scale"]["steps"][0]["state"] == "kept"
    assert {"launch", "values"} <= set(found["tasks/pointwise_scale"]["phases"])
    assert found["tasks/pointwise_scale"]["against"]["eager"]["value"] > 1
    assert "ESTIMATED" in out
    assert "pointwise" in out
    assert "3/3" in err


@pytest.mark.slow
def test_a_killed_bench_goes_on_with_what_has_no_line(folder, begin, tmp_path):
    results = tmp_path / "lines.jsonl"
    process = begin(folder, "--json", results, "--jobs", 1)
    wait_for_line(results, process)
    process.kill()
    process.communicate()
    before = lines_of(results)
    assert 1 <= len(before) < 3
    code, out, err = ended(begin(folder, "--json", results, "--resume"))
    assert code == 0, err
    assert f"{len(before)} of 3 tasks have a line already" in err
    found = lines_of(results)
    assert found[: len(before)] == before
    assert len({line["task"] for line in found}) == len(found) == 3
    assert "3 tasks" in out


@pytest.mark.slow
def test_a_budget_ends_a_bench_and_its_children(folder, begin, tmp_path):
    results = tmp_path / "lines.jsonl"
    began = time.monotonic()
    code, _, err = ended(begin(folder, "--json", results, "--budget", 1))
    assert code == 0
    assert time.monotonic() - began < 40
    assert "the budget is spent" in err
    assert "--resume goes on" in err
    assert not results.exists() or len(lines_of(results)) < 3


@pytest.mark.slow
def test_an_interrupt_ends_it_with_the_table(folder, begin, tmp_path):
    results = tmp_path / "lines.jsonl"
    process = begin(folder, "--json", results, "--jobs", 1)
    wait_for_line(results, process)
    process.terminate()
    code, out, err = ended(process, 60)
    assert code == 130
    assert "it was stopped" in err
    assert "the worst" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Give a folder"),
        (("nowhere",), "no file or folder"),
        (("samples", "--protocol", "lax"), "choose strict or plain"),
        (("samples", "--precision", "fp8"), "choose match or tf32"),
        (("samples", "--budget", "0"), "above 0"),
        (("samples", "--jobs", "-1"), "from 1"),
    ],
)
def test_bad_input_is_one_sentence(begin, arguments, sentence):
    code, out, err = ended(begin(*arguments), 60)
    assert code == 2
    assert sentence in err
    assert out == ""
    assert len(err.strip().splitlines()) == 1


def test_the_runner_needs_no_native_library_and_no_screen():
    code = (
        "import sys, mtmc_engine.bench.command; "
        "print(sorted({m.split('.')[0] for m in sys.modules}"
        " & {'torch','triton','numpy','llama_cpp','openai','textual','rich'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"

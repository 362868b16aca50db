"""Finding tasks, and what our own suite holds."""

from collections import Counter
from pathlib import Path

import pytest

from mtmc_engine.bench.options import BenchOptions
from mtmc_engine.bench.tasks import find_tasks
from mtmc_engine.core.errors import UsageError

SUITE = Path(__file__).resolve().parents[2] / "samples" / "suite"
QUOTAS = {
    "pointwise": 8,
    "reduce": 10,
    "norm": 8,
    "scan": 5,
    "matmul": 12,
    "chain": 17,
    "net": 10,
}


def test_the_suite_has_its_quotas():
    assert Counter(task.family for task in find_tasks([str(SUITE)])) == QUOTAS


def test_half_of_the_chains_follow_a_convolution():
    stems = Counter(path.stem.split("_")[1] for path in SUITE.glob("chain_*.py"))
    assert stems["conv"] == 8
    assert stems["linear"] + stems["matmul"] == 9


def test_suite_files_are_short():
    for path in SUITE.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 60, path.name


def test_folders_give_files_with_inputs(folder):
    found = find_tasks([str(folder)])
    assert [task.name for task in found] == [
        "tasks/broken",
        "tasks/norm_softmax",
        "tasks/pointwise_scale",
    ]
    assert [task.family for task in found] == ["tasks", "norm", "pointwise"]


def test_a_file_is_taken_once(folder):
    file = folder / "norm_softmax.py"
    assert len(find_tasks([str(file), str(folder), str(file)])) == 3


def test_hidden_folders_are_left_out(folder):
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.py").write_text("def inputs(): return []\n")
    assert len(find_tasks([str(folder)])) == 3


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="no file or folder"):
        find_tasks([str(tmp_path / "nowhere")])
    with pytest.raises(UsageError, match="There is no task"):
        find_tasks([str(tmp_path)])


@pytest.mark.parametrize(("jobs", "measured"), [(1, True), (1, False), (2, True), (16, True)])
def test_workers_fit_the_machine(jobs, measured):
    options = BenchOptions(("x",), jobs=jobs)
    assert options.walkers(measured) >= 1
    assert options.openers(measured) >= 1
    assert options.walkers(measured) + options.openers(measured) <= max(2, jobs)


def test_a_gpu_is_shared_by_few():
    options = BenchOptions(("x",), jobs=16)
    workers = options.walkers(True), options.openers(True), options.compilers(True)
    assert workers == (3, 4, 9)
    assert sum(workers) == 16
    assert BenchOptions(("x",), jobs=128).walkers(True) == 3

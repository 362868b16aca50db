"""The file of results: whole lines, also after a kill."""

import pytest

from mtmc_engine.bench.store import Store
from mtmc_engine.core.errors import UsageError
from tests.bench.test_totals import line


def test_lines_come_back(tmp_path):
    path = tmp_path / "deep" / "lines.jsonl"
    store = Store(path, resume=False)
    store.add(line("a", eager=2.0))
    store.add(line("b", verdict="FAILED", time_kind=None))
    assert Store(path, resume=True).lines == store.lines


def test_results_are_not_overwritten(tmp_path):
    path = tmp_path / "lines.jsonl"
    Store(path, resume=False).add(line("a"))
    with pytest.raises(UsageError, match="--resume"):
        Store(path, resume=False)


def test_half_a_line_is_passed_over_and_the_next_one_is_whole(tmp_path):
    path = tmp_path / "lines.jsonl"
    Store(path, resume=False).add(line("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    resumed = Store(path, resume=True)
    assert [one.task for one in resumed.lines] == ["a"]
    resumed.add(line("b"))
    assert [one.task for one in Store(path, resume=True).lines] == ["a", "b"]


def test_without_a_file_lines_are_kept_in_memory():
    store = Store(None, resume=False)
    store.add(line("a"))
    assert len(store.lines) == 1


def test_a_folder_is_no_file_of_results(tmp_path):
    with pytest.raises(UsageError, match="cannot be used"):
        Store(tmp_path, resume=False)

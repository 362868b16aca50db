"""Totals: shares of all tasks, means of those that have a ratio, and the table."""

import math

import pytest

from mtmc_engine.bench.line import FAILED, ORIGINAL, Line
from mtmc_engine.bench.table import table
from mtmc_engine.bench.totals import geometric_mean, totals_of, worst_of
from mtmc_engine.core.measurement import Ratio


def line(task, family="matmul", verdict="FASTER", eager=None, compiled=None, **others):
    against = {"eager": eager, "torch.compile": compiled}
    found = {
        name: ratio if isinstance(ratio, Ratio) else Ratio(ratio, ratio - 0.05, ratio + 0.05)
        for name, ratio in against.items()
        if ratio is not None
    }
    given = {"proven": verdict != FAILED, "seconds": 10.0, "time_kind": "measured", **others}
    return Line(
        task=task,
        family=family,
        file=f"/{task}.py",
        digest="d",
        protocol="strict",
        precision="tf32",
        device="H200",
        verdict=verdict,
        reason="a reason",
        against=found,
        **given,
    )


LINES = [
    line("a", eager=4.0, compiled=2.0, own_share=0.9, gpu_s=2.0),
    line("b", eager=1.0, compiled=0.5, own_share=0.2),
    line("c", verdict=FAILED, time_kind=None),
    line("d", "norm", eager=2.0, compiled=0.985, own_share=0.5, floor_share=0.5),
]


def test_shares_count_failed_tasks_and_means_do_not():
    matmul, norm, everything = totals_of(LINES)
    assert (matmul.family, norm.family, everything.family) == ("matmul", "norm", "all")
    assert (matmul.tasks, matmul.failed) == (3, 1)
    assert matmul.proven == pytest.approx(2 / 3)
    assert matmul.faster == pytest.approx(1 / 3)
    assert matmul.eager.count == 2
    assert matmul.eager.geometric_mean == pytest.approx(2.0)
    assert matmul.eager.median == pytest.approx(2.5)
    assert (matmul.compiled.worst, matmul.compiled.worst_task) == (0.5, "b")
    assert everything.eager.geometric_mean == pytest.approx(2.0)
    assert everything.compiled.geometric_mean == pytest.approx((2 * 0.5 * 0.985) ** (1 / 3))


def test_at_least_as_fast_allows_two_percent():
    assert totals_of(LINES)[1].compiled.at_least == 1.0
    assert totals_of([line("e", compiled=0.979)])[0].compiled.at_least == 0.0


def test_own_kernels_count_where_they_were_measured():
    matmul, norm, _ = totals_of(LINES)
    assert matmul.own_half == 0.5
    assert norm.own_half == 1.0
    assert totals_of([line("e", eager=2.0)])[0].own_half is None


def test_faster_needs_the_whole_interval():
    wide = line("e", eager=Ratio(1.4, 0.99, 1.9))
    slow = line("f", eager=Ratio(0.9, 0.85, 0.95))
    noisy = line("g", eager=Ratio(0.9, 0.7, 1.1))
    found = totals_of([wide, slow, noisy])[-1]
    assert found.faster == 0.0
    assert found.slower == 1


def test_the_worst_begin_with_what_failed():
    assert [one.task for one in worst_of(LINES, 3)] == ["c", "b", "d"]


def test_no_line_no_total():
    assert totals_of([]) == ()
    assert table([]) == "No task has a line yet."


def test_geometric_mean():
    assert geometric_mean([1.0, 8.0, 1.0]) == pytest.approx(2.0)
    assert math.isclose(geometric_mean([0.25]), 0.25)


def test_the_table_holds_every_family_and_says_what_was_measured():
    text = table(LINES)
    assert "measured on H200" in text
    rows = {row.split()[0]: row for row in text.splitlines() if row.strip()}
    assert "2.00" in rows["matmul"]
    assert "67%" in rows["matmul"]
    assert "a reason" in rows["c"]
    assert "~" not in text


def test_estimates_are_marked_everywhere():
    text = table([line("a", eager=4.0, verdict="UNTIMED", time_kind="estimated")])
    assert "ESTIMATED" in text
    assert "~4.00" in text
    assert " 4.00" not in text


def test_what_could_not_be_measured_is_in_no_mean():
    estimated = line("e", eager=9.0, time_kind="estimated")
    found = totals_of([*LINES[:2], estimated])[0]
    assert found.tasks == 3
    assert found.eager.geometric_mean == pytest.approx(2.0)
    assert "1 could not be measured" in table([*LINES, estimated])


def test_an_original_is_neither_faster_nor_slower():
    same = Ratio(1.0, 1.0, 1.0)
    found = totals_of([line("a", verdict=ORIGINAL, eager=same, compiled=0.8)])[-1]
    assert (found.proven, found.faster, found.slower) == (1.0, 0.0, 0)

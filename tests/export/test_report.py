"""The report: everything that was decided and proven, in well-formed HTML without resources."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace
from test_export import ESTIMATE, KERNEL, STEPS, make_task, path_to

from mtmc_engine.core.events import AttemptSummary
from mtmc_engine.core.measurement import Contestant, Measurement, Ratio
from mtmc_engine.core.program import Program, Schedule
from mtmc_engine.export.report import report_html
from mtmc_engine.export.report_diff import diff_table
from mtmc_engine.export.report_time import contestants

VOID = {"meta"}
MEASURED = Measurement(
    "measured", 10.0,
    {"eager": Ratio(2.0, 1.9, 2.1), "torch.compile": Ratio(1.2, 1.1, 1.3)},
    8.0, "interleaved pairs", (Contestant("eager", 20.5),), device={"clock MHz": 1980},
)  # fmt: skip


class Checker(HTMLParser):
    """Every element is closed in order; what is seen is kept as text."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


@pytest.fixture
def task(tmp_path: Path):
    return replace(make_task(tmp_path, "module"), notes=("a note",))


@pytest.fixture
def path():
    return path_to(Program(KERNEL.format(header="x = 1 < 2"), Schedule(())))


def test_all_that_was_decided_and_proven_is_there(task, path):
    failed = AttemptSummary("n1b", 1, 0, "llama", "NUMERIC", "wrong at [0, 0]")
    steps = (replace(STEPS[0], reason="1.5 times as fast", attempts=(failed,), coder="builtin"),)
    page = parsed(report_html(task, path, steps, "estimated"))
    text = " ".join(" ".join(page.text).split())
    for words in (
        "1.50x estimated", "1.5 times as fast", "attempt 1", "NUMERIC", "wrong at [0, 0]",
        "r1 reads x <three> times", "values 2/2", "19x67, with NaN", "0x67", "2 cases", "a & b",
        "softmax_kernel", "39", "Test card", "sm_90", "a note", "Nothing was measured",
        "+ x = 1 < 2", "def row_softmax",
    ):  # fmt: skip
        assert words in text, words
    assert "src" not in page.attributes
    assert "href" not in page.attributes


def test_measured_times_have_intervals_and_no_estimate(task, path):
    original = replace(path[0], measurement=MEASURED)
    answer = replace(path[1], measurement=MEASURED)
    html = report_html(task, (original, answer), STEPS[:0], "measured")
    text = " ".join(" ".join(parsed(html).text).split())
    assert "95 % interval 1.90 to 2.10" in text
    assert "clock MHz 1980" in text
    assert "interleaved pairs" in text
    assert 'class="unmeasured"' not in html


def test_replayed_times_are_called_so(task, path):
    original = replace(path[0], measurement=replace(MEASURED, kind="replayed"))
    answer = replace(path[1], measurement=replace(MEASURED, kind="replayed"))
    html = report_html(task, (original, answer), STEPS[:0], "replayed")
    text = " ".join(" ".join(parsed(html).text).split())
    assert html.count('<span class="unmeasured">replayed</span>') >= 4
    assert "Nothing was measured here" in text
    assert "roofline model" not in text


def test_an_answer_without_a_time_is_no_original(task, path):
    untimed = replace(path[0], measurement=None), replace(path[1], measurement=None)
    text = " ".join(parsed(report_html(task, untimed, (), "estimated")).text)
    assert "Not timed" in text
    assert "Nothing was timed" in text
    assert "The original" not in text


def test_times_of_all_contestants(path):
    original = replace(ESTIMATE, time_us=15.0)
    assert contestants(original, MEASURED) == {
        "eager": 20.5,  # as it was timed, not as the ratio says
        "original": 15.0,
        "torch.compile": 12.0,
        "this program": 10.0,
        "floor": 8.0,
    }


def test_the_original_as_the_answer(task, path):
    original = replace(path[0], measurement=ESTIMATE)
    page = parsed(report_html(task, (original,), (), "estimated"))
    text = " ".join(" ".join(page.text).split())
    assert "No step was kept" in text
    assert "Nothing to prove" in text
    assert "What each kept step changed" not in text


def test_a_diff_keeps_numbers_and_escapes():
    before = "".join(f"line {number}\n" for number in range(1, 41))
    table = diff_table(before, before.replace("line 20\n", "a < b\n"))
    assert "<tr class='removed'><td>20</td><td></td><td>- line 20</td></tr>" in table
    assert "<tr class='added'><td></td><td>20</td><td>+ a &lt; b</td></tr>" in table
    assert "line 17" in table
    assert "line 16" not in table
    assert "same" in diff_table(before, before)

"""Each pane as text: what it says, and that an estimate never passes for a measurement."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs
from screenplay import folded, until_question

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.core.events import (
    BestChanged,
    BestSummary,
    DecisionNeeded,
    NodeAdded,
    PhaseChanged,
    PlanProposed,
    SessionFinished,
    SessionStarted,
    TaskOpened,
)
from mtmc_engine.core.measurement import Contestant, GroupCost, Measurement, Ratio
from mtmc_engine.core.program import Region
from mtmc_engine.core.verdict import Class, Gate, GateResult, Verdict
from mtmc_tui.screen.glyphs import ASCII, UNICODE
from mtmc_tui.screen.keymap import merged
from mtmc_tui.screen.model import Node, Snapshot, apply
from mtmc_tui.screen.render.activity import activity_text
from mtmc_tui.screen.render.code import code_text, highlighted
from mtmc_tui.screen.render.code import folded as folded_line
from mtmc_tui.screen.render.diff import changed_words, paired_rows, unified_rows
from mtmc_tui.screen.render.help import fact_text, help_text, log_text
from mtmc_tui.screen.render.plan import plan_line, plan_rows
from mtmc_tui.screen.render.proof import facts, gate_parts, proof_lines
from mtmc_tui.screen.render.regions import region_line, region_rows
from mtmc_tui.screen.render.status import status_line
from mtmc_tui.screen.render.time import bar_text, bars, time_lines, time_title
from mtmc_tui.screen.render.words import (
    bytes_text,
    clip,
    duration_text,
    packed,
    percent_text,
    ratio_text,
    time_text,
)
from mtmc_tui.screen.view import View

LOWER = Action("lower", "lower r1", "r1", reason="one kernel reads it once")


def measured(**more) -> Measurement:
    return Measurement(
        "measured",
        201.4,
        {
            "previous": Ratio(1.18, 1.16, 1.20),
            "original": Ratio(2.04, 2.01, 2.07),
            "eager": Ratio(2.04, 2.01, 2.07),
            "torch.compile": Ratio(1.18, 1.16, 1.20),
        },
        floor_us=168.0,
        method="paired",
        contestants=(Contestant("eager", 412.1), Contestant("torch.compile", 238.0)),
        groups=(GroupCost("r1", 201.4, 2**28, 0, 0.93, 0.38, "memory"),),
        **more,
    )


def tree(measurement: Measurement, verdict: Class = Class.FASTER) -> Snapshot:
    task = TaskOpened(
        "t", "Model", ("4x8",), ("float32",), "H200", measurement.kind == "measured", True, (), "x"
    )
    events = (
        task,
        NodeAdded("n0", None, None, "kept", "a = 1\n", "d"),
        NodeAdded("n1", "n0", LOWER, "kept", "a = 2\n", "d", verdict=Verdict(verdict, "why")),
        NodeAdded("n2", "n1", LOWER, "kept", "a = 3\n", "d", measurement=measurement),
        BestChanged("n2", 2.04, 201.4, measurement.kind),
    )
    snapshot = Snapshot()
    for event in events:
        snapshot = apply(snapshot, event, 0.0)
    return replace(snapshot, at="n2")


def plain(lines) -> str:
    return "\n".join(line.plain.rstrip() for line in lines)


def test_numbers() -> None:
    assert time_text(412.12, UNICODE) == "412.1 µs"
    assert time_text(8.0, UNICODE) == "8.00 µs"
    assert time_text(1234.0, UNICODE) == "1234 µs"
    assert time_text(30_060.0, UNICODE) == "30.1 ms"
    assert time_text(412.1, UNICODE, "estimated") == "≈412.1 µs"
    assert time_text(412.1, ASCII, "estimated") == "~412.1 us"
    assert ratio_text(1.305, UNICODE) == "1.30x"
    assert percent_text(0.62) == "62 %"
    assert percent_text(0.001) == "<1 %"
    assert percent_text(0.0) == "0 %"
    assert duration_text(42.9) == "0:42"
    assert duration_text(3723) == "1:02:03"
    assert duration_text(-4) == "0:00"
    assert bytes_text(16384) == "16 KB"
    assert bytes_text(1536) == "1.5 KB"
    assert bytes_text(12) == "12 B"
    assert clip("retile r1", 6, UNICODE) == "retil…"
    assert clip("retile r1", 0, UNICODE) == ""


def test_measured_times_have_solid_bars_and_intervals() -> None:
    text = plain(time_lines(tree(measured()), View(), 78))
    assert "eager" in text
    assert "412.1 µs" in text
    assert "█" in text
    assert "this is 1.18x as fast [1.16, 1.20]" in text
    assert "memory floor" in text
    assert "83 % reached" in text
    assert "est." not in text
    assert time_title(tree(measured()), View()) == "measured"


def test_replayed_times_look_like_neither() -> None:
    ratio = Ratio(1.18, 1.16, 1.20)
    replayed = Measurement("replayed", 201.4, {"original": ratio, "previous": ratio}, 168.0, "file")
    for signs, mark in ((UNICODE, "»"), (ASCII, "&")):
        view = View(glyphs=signs)
        text = plain(time_lines(tree(replayed), view, 78))
        *shown, floor = text.splitlines()
        assert all(mark in line for line in shown)
        assert f"{mark}1.18x as fast [1.16, 1.20]" in text
        assert not {signs.bar, signs.about} & set("".join(shown))
        assert floor.startswith("memory floor")
        assert time_title(tree(replayed), view) == f"{mark} REPLAYED from a recording, not measured"
        assert plan_rows(tree(replayed), view)[-1].value == f"{mark}1.18x"


def test_estimated_times_share_no_sign_with_measured_ones() -> None:
    one = Ratio(1.18, 1.18, 1.18)
    estimate = Measurement("estimated", 201.4, {"original": one, "previous": one}, 168.0, "model")
    snapshot = tree(estimate)
    text = plain(time_lines(snapshot, View(), 78))
    assert "█" not in text
    assert "[" not in text
    assert all("≈" in line for line in text.splitlines())
    assert "this is ≈1.18x as fast" in text
    assert "ESTIMATED" in time_title(snapshot, View())
    rows = plan_rows(snapshot, View())
    assert rows[-1].value == "≈1.18x"


def test_the_bar_of_a_measured_time_is_drawn_in_eighths() -> None:
    assert bar_text(0.5, 8, UNICODE, "measured") == "████"
    assert bar_text(0.53, 8, UNICODE, "measured") == "████▎"
    assert bar_text(0.0001, 8, UNICODE, "measured") == "▏"
    assert bar_text(0.5, 8, ASCII, "measured") == "####"
    assert bar_text(0.5, 8, ASCII, "estimated") == "::::"


def test_a_failed_program_shows_its_verdict_and_no_time() -> None:
    wrong = Verdict(
        Class.NUMERIC,
        "row 3 is 0.0, it should be 0.1",
        (GateResult(Gate.VALUES, False, 2.0, "wrong", {"cases": "17/41"}, "line one\nline two"),),
    )
    snapshot = apply(
        tree(measured()), NodeAdded("n3", "n2", LOWER, "failed", "s", "d", verdict=wrong), 1.0
    )
    view = View(selected="n3")
    assert plain(time_lines(snapshot, view, 78)) == "not timed: NUMERIC"
    text = plain(proof_lines(snapshot, view, 78))
    assert "✗ values failed 17/41" in text
    assert "✗ NUMERIC" in text
    assert "row 3 is 0.0" in text
    assert text.endswith("line one\nline two")
    row = next(row for row in plan_rows(snapshot, view) if row.key == "n3")
    assert (row.glyph, row.value, row.word) == ("✗", "", "NUMERIC")


def test_gates_to_come_are_shown_while_the_proof_runs() -> None:
    node = Node(
        "n1", "n0", LOWER, "open", gates=(GateResult(Gate.PARSE, True, 0.0),), gate=Gate.VALUES
    )
    snapshot = Snapshot(phase=PhaseChanged("prove", "", 23, 41))
    words = [text for text, _ in gate_parts(node, snapshot, UNICODE)]
    assert words[:5] == ["✓ parse", "· import", "· compile", "· launch", "› values 23/41"]


def test_facts_are_of_the_largest_kernel() -> None:
    kernels = [
        {"kernel": "a", "registers": 40, "spill_bytes": 0, "shared_bytes": 16384},
        {"kernel": "b", "registers": 96, "spill_bytes": None, "shared_bytes": 0},
    ]
    gates = (
        GateResult(Gate.COMPILE, True, 1.0, evidence={"kernels": kernels}),
        GateResult(Gate.VALUES, True, 1.0, evidence={"cases": "4/4", "worst_share_of_bound": 0.31}),
    )
    assert facts(Node("n1", "n0", LOWER, "open", gates=gates)) == [
        "2 kernels", "registers 96", "shared 16 KB", "spills 0", "error 31 % of the bound",
    ]  # fmt: skip


def test_plan_lines_fit_their_width_with_glyph_and_word() -> None:
    snapshot = folded(until_question())
    for signs in (UNICODE, ASCII):
        view = View(glyphs=signs)
        rows = plan_rows(snapshot, view)
        assert any(row.word == "waiting" for row in rows)
        for width in (26, 40, 90):
            lines = [plan_line(row, width, signs) for row in rows]
            assert all(line.cell_length <= width for line in lines)
            assert all(row.glyph in line.plain for row, line in zip(rows, lines, strict=True))
    ascii_text = "".join(
        plan_line(row, 60, ASCII).plain for row in plan_rows(snapshot, View(glyphs=ASCII))
    )
    assert ascii_text.isascii()


def test_all_signs_are_one_cell_wide() -> None:
    from rich.cells import cell_len

    for signs in (UNICODE, ASCII):
        for name in ("original", "kept", "failed", "rejected", "open", "running", "proposed"):
            assert cell_len(getattr(signs, name)) == 1
        assert all(cell_len(part) == 1 for part in signs.bar + signs.bar_parts)


def test_regions_say_share_and_distance_from_the_roof() -> None:
    snapshot = tree(measured())
    rows = region_rows(snapshot, View())
    line = region_line(rows[0], 40, UNICODE).plain
    assert "93 % time" in line
    assert "38 % memory" in line
    assert "256 MB" in region_line(rows[0], 70, UNICODE).plain


def test_costs_of_a_parent_are_not_those_of_other_regions() -> None:
    both = (Region("r1", "softmax", ()), Region("r2", "mul", ()))
    fused = (Region("r1", "softmax+mul", ()),)
    costs = tuple(GroupCost(r.id, 1.0, 1, 0, 0.5, 0.5, "memory") for r in both)
    snapshot = Snapshot()
    for event in (
        NodeAdded("n0", None, None, "kept", "s", "d", regions=both),
        PlanProposed("n0", 1, (), "p", 0.0, "", costs),
        NodeAdded("n1", "n0", LOWER, "open", "s", "d", regions=fused),
        NodeAdded("n2", "n0", LOWER, "open", "s", "d", regions=both),
    ):
        snapshot = apply(snapshot, event, 0.0)
    (row,) = region_rows(snapshot, View(selected="n1"))
    assert (row.key, row.label, row.cost) == ("r1", "softmax+mul", None)
    rows = region_rows(snapshot, View(selected="n2"))
    assert [row.cost for row in rows] == list(costs)


def test_an_answer_says_why_and_where() -> None:
    best = BestSummary("n0", True, None, None, None, reason="2 steps are proven but not timed.")
    ended = SessionFinished("t", "H200", (), best, "/home/ada/out", "s", "steps")
    lines = activity_text(apply(Snapshot(), ended, 0.0), View(), 80, 0.0).plain.splitlines()
    assert lines == [
        " ✓ finished  the answer is the original  stopped by steps",
        "    2 steps are proven but not timed.",
        "    exported to /home/ada/out",
    ]
    by_hand = BestSummary("n1", False, None, None, None, actions=("retile r1 to 512",))
    ended = SessionFinished("t", "H200", (), by_hand, None, "s", "user")
    (line,) = activity_text(apply(Snapshot(), ended, 0.0), View(), 80, 0.0).plain.splitlines()
    assert line == " ✓ finished  not timed: retile r1 to 512  stopped by user"


def test_a_device_says_what_its_times_are() -> None:
    task = TaskOpened("t", "M", ("4",), ("float32",), "H200", False, True, (), "x")
    started = SessionStarted("s", "t.py", "j", "p", "c", "H200", 8)
    for instead, said in (
        ("estimated", "H200 · ≈estimates"),
        ("replayed", "H200 · »replayed times"),
        ("none", "H200 · not timed"),
    ):
        snapshot = apply(apply(Snapshot(), started, 0.0), structs.replace(task, instead=instead), 0)
        assert said in status_line(snapshot, View(), 120).plain


def test_the_question_says_what_is_asked_and_what_was_found() -> None:
    snapshot = folded(until_question())
    text = activity_text(snapshot, View(), 120, 60.0).plain
    assert snapshot.question is not None
    assert f"keep {snapshot.question.action.phrase}?" in text
    node = snapshot.nodes[snapshot.question.node]
    assert node.verdict is not None
    assert node.verdict.verdict.value in text


def test_work_shows_phase_elapsed_and_what_is_left() -> None:
    snapshot = apply(Snapshot(), PhaseChanged("prove", "values", 23, 41, 120.0), 100.0)
    text = activity_text(snapshot, View(), 120, 112.0).plain
    assert "proving" in text
    assert "0:12" in text
    assert "23/41" in text
    assert "1:48 left of the budget" in text
    uncounted = apply(Snapshot(), PhaseChanged("plan"), 100.0)
    assert "█" not in activity_text(uncounted, View(), 120, 112.0).plain


def test_the_status_line_gives_up_its_last_words_first() -> None:
    snapshot = folded(until_question())
    wide, narrow = (status_line(snapshot, View(), width).plain for width in (160, 70))
    assert "coder builtin" in wide
    assert "coder" not in narrow
    assert "rms_norm.py" in narrow
    assert "watching" in narrow
    assert len(narrow) <= 70
    assert ("estimates" in narrow) != snapshot.measured


OLD = "def f(x):\n    a = x + 1\n    return a\n"
NEW = "def f(x):\n    a = x + 2\n    b = a\n    return a\n"


def test_a_diff_marks_lines_and_the_words_in_them() -> None:
    rows = unified_rows(OLD, NEW)
    assert [row.kind for row in rows] == ["@", " ", "-", "+", "+", " "]
    removed, added = rows[2], rows[3]
    assert OLD.splitlines()[1][slice(*removed.old_spans[0])] == "1"
    assert NEW.splitlines()[1][slice(*added.new_spans[0])] == "2"
    assert rows[0].head == "f"
    assert [row.kind for row in paired_rows(OLD, NEW)] == ["@", " ", "~", "+", " "]


def test_lines_with_little_in_common_have_no_marked_words() -> None:
    assert changed_words("a = 1", "for step in range(9):") == ((), ())


def test_side_by_side_lines_have_both_halves() -> None:
    snapshot = tree(measured())
    view = View(split=True)
    lines = [line.plain for line in code_text(snapshot, view, 61).lines]
    changed = next(line for line in lines if "a = 2" in line)
    assert "a = 3" in changed
    assert len(changed) == 61


def test_code_tabs() -> None:
    snapshot = tree(measured())
    assert "a = 3" in plain(code_text(snapshot, View(tab="source"), 60).lines)
    assert "x" in plain(code_text(snapshot, View(tab="reference"), 60).lines)
    assert plain(code_text(snapshot, View(tab="ptx"), 60).lines) == "Not compiled yet."
    asked = folded(until_question())
    assert plain(code_text(asked, View(tab="ptx"), 200).lines).startswith("No kernel of this")
    original = plain(code_text(asked, View(tab="ptx", selected="n0"), 200).lines)
    assert original == "The original runs as it is."
    diff = code_text(snapshot, View(), 60)
    assert diff.lines[0].plain == "why: one kernel reads it once"
    assert diff.lines[diff.stops[0]].plain.startswith("@@")


def test_the_code_filter_makes_matches_the_stops() -> None:
    snapshot = tree(measured())
    view = View(tab="source", filters=((3, "A ="),))
    assert code_text(snapshot, view, 60).stops == (0,)


def test_an_option_says_why_and_what_the_planner_read() -> None:
    snapshot = folded(until_question())
    option = snapshot.options()[0]
    text = plain(code_text(snapshot, View(selected=f"option:{option.action.phrase}"), 200).lines)
    assert option.action.reason in text
    assert "what the planner read" in text
    assert snapshot.proposal is not None
    assert snapshot.proposal.state_text.splitlines()[0] in text


def test_long_code_lines_are_folded_at_a_word_and_nothing_is_lost() -> None:
    source = "    out = kernel[(rows,)](x, out, n_cols, x.stride(0), BLOCK_COLS=4096, num_warps=8)"
    parts = folded_line(highlighted(source)[0], 40)
    assert all(part.cell_length <= 40 for part in parts)
    assert all(part.plain.startswith("      ") for part in parts[1:])
    joined = parts[0].plain + "".join(part.plain[6:] for part in parts[1:])
    assert joined == source


def test_highlighting_keeps_every_line() -> None:
    source = "\n\ndef f():\n    '''a\n    b'''\n\n    return 1\n"
    assert [line.plain for line in highlighted(source)] == source.splitlines()


def test_packed_parts_are_never_broken() -> None:
    parts = [("✓ parse", ""), ("✓ import", ""), ("✓ compile 1.2 s", "")]
    assert [line.plain for line in packed(parts, " ", 17)] == [
        "✓ parse ✓ import",
        "✓ compile 1.2 s",
    ]
    assert packed([], " ", 17) == []


def test_bars_leave_out_what_would_be_said_twice() -> None:
    snapshot = tree(measured())
    names = [bar.name for bar in bars(snapshot, snapshot.nodes["n2"], UNICODE)]
    assert names == [
        "eager",
        "torch.compile",
        "original",
        "previous",
        "this program",
        "memory floor",
    ]


def test_the_best_so_far_has_no_line_beside_a_kept_program_that_beats_it() -> None:
    snapshot = replace(tree(measured()), best=BestChanged("n1", 1.5, 260.0, "measured"))
    other = replace(snapshot.nodes["n2"], id="n3", parent="n0", state="rejected")
    assert "best so far" in [bar.name for bar in bars(snapshot, other, UNICODE)]
    kept = replace(other, state="kept")
    assert "best so far" not in [bar.name for bar in bars(snapshot, kept, UNICODE)]
    asked = replace(snapshot, question=DecisionNeeded("n3", 3, LOWER, ("approve",)))
    own = next(bar for bar in bars(asked, other, UNICODE) if bar.name == "this program")
    assert own.note == "faster than the best so far"
    resumed = replace(snapshot, best=BestChanged("n0", 1.0, 412.0, "measured"))
    assert "best so far" not in [bar.name for bar in bars(resumed, other, UNICODE)]


def test_a_program_bound_by_compute_says_how_near_that_roof_is() -> None:
    costs = (
        GroupCost("r1", 90.0, 2**20, 10**12, 0.9, 0.9, "compute"),
        GroupCost("r2", 10.0, 2**20, 0, 0.1, 0.4, "memory"),
    )
    snapshot = tree(measured())
    bound = replace(snapshot, costs={"n2": costs})
    floor = bars(bound, bound.nodes["n2"], UNICODE)[-1]
    assert (floor.name, floor.note) == ("memory floor", "83 % reached, 81 % of compute")
    assert bars(snapshot, snapshot.nodes["n2"], UNICODE)[-1].note == "83 % reached"


def test_a_proposed_stop_says_why_and_what_reject_does() -> None:
    stop = Action("stop", "stop")
    why = "No step that is left promises more than 1.5 % by the cost model."
    asked = replace(
        tree(measured()),
        question=DecisionNeeded("n2", 3, stop, ("approve", "reject", "stop"), why),
    )
    text = " ".join(activity_text(asked, View(), 78, 60.0).plain.split())
    assert f"suggested: approve. {why} r takes the next step instead." in text


def test_one_more_option_is_one() -> None:
    snapshot = folded(until_question())
    assert snapshot.proposal is not None
    options = [ScoredAction(Action("lower", f"lower r{number}"), 0.1) for number in range(9)]
    for count, words in ((6, "1 more option"), (7, "2 more options")):
        proposal = structs.replace(snapshot.proposal, options=tuple(options[:count]))
        rows = plan_rows(replace(snapshot, proposal=proposal), View())
        assert rows[-1].text == words


def test_the_original_is_the_best_until_something_is_kept() -> None:
    events = until_question()
    first = plan_rows(folded(events), View())[0]
    assert first.word == "best"
    said_so = folded([*events, BestChanged("n0", 1.0, 258.1, "estimated")])
    assert plan_rows(said_so, View())[0] == first


def test_the_log_is_written_for_readers() -> None:
    kernel = {"kernel": "softmax_kernel", "registers": 23, "error": "", "grid": [2048, 1]}
    assert fact_text(kernel) == "kernel softmax_kernel, registers 23, grid 2048, 1"
    assert fact_text(True) == "yes"
    assert fact_text(0.0858333) == "0.08583"
    assert fact_text({}) == fact_text([]) == fact_text(None) == "none"
    text = log_text(folded(until_question()), View(), "engine.log").plain
    assert not set("{}") & set(text)
    assert "kernels: kernel pow_mean_kernel" in text


def test_ids_in_the_help_do_not_run_into_the_text() -> None:
    lines = help_text(Snapshot(), View(), merged({}), 69).plain.splitlines()
    at = lines.index("  A          approve all remaining steps by the policy of --yes, asks")
    assert lines[at + 1 : at + 3] == [
        " " * 13 + "once  step.approve-all",
        "  r          reject this step  step.reject",
    ]
    keys = lines[lines.index("Step") :]
    assert all(len(line) <= 69 for line in keys)

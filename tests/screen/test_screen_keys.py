"""The table of keys, the check of user keymaps, the documentation made from both."""

from __future__ import annotations

from pathlib import Path

from screenplay import folded, recorded, until_question

from mtmc_tui.screen.keymap import documentation, keymap_faults, merged, usable
from mtmc_tui.screen.keys import BY_ID, FOOTER_KEYS, KEYS, footer_keys
from mtmc_tui.screen.main import MainScreen
from mtmc_tui.screen.model import Snapshot
from mtmc_tui.screen.render.status import footer_line
from mtmc_tui.screen.view import View

DOCUMENT = Path(__file__).parents[2] / "docs" / "keys.md"

# The keys that docs/tui promises: action id -> keys.
PROMISED = {
    "step.approve": "a",
    "step.approve-all": "A",
    "step.reject": "r",
    "step.reject-reason": "R",
    "step.edit": "e",
    "step.retry": "g",
    "step.skip": "s",
    "step.hint": "h",
    "plan.branch": "b",
    "run.pause": "p",
    "run.stop": "S",
    "run.watch": "w",
    "run.export": "x",
    "source.open": "o",
    "pane.zoom": "z",
    "diff.mode": "d",
    "copy": "y",
    "quit": "q,ctrl+q",
    "palette": "ctrl+p,colon",
    "help": "question_mark,f1",
}


def test_the_promised_keys_have_their_ids() -> None:
    assert {name: BY_ID[name].keys for name in PROMISED} == PROMISED
    assert {f"pane.{n}" for n in range(1, 6)} <= set(BY_ID)


def test_no_key_does_two_things_and_no_id_is_used_twice() -> None:
    assert keymap_faults({}) == []
    assert len(BY_ID) == len(KEYS)


def test_nothing_essential_sits_on_ctrl_and_a_letter_alone() -> None:
    for key in KEYS:
        assert any(not name.startswith("ctrl+") for name in key.keys.split(","))


def test_every_key_has_an_action_on_the_screen() -> None:
    for key in KEYS:
        name = key.action.removeprefix("app.").split("(")[0]
        owner = MainScreen if not key.action.startswith("app.") else None
        if owner is not None:
            assert hasattr(owner, f"action_{name}"), key.action


def test_a_clash_names_both_actions_and_the_whole_keymap_is_left_out() -> None:
    faults = keymap_faults({"step.approve": "r"})
    assert len(faults) == 1
    assert "step.approve" in faults[0]
    assert "step.reject" in faults[0]
    assert usable({"step.approve": "r"}) == {}


def test_a_swap_of_keys_is_no_clash() -> None:
    keymap = {"step.approve": "r", "step.reject": "a"}
    assert keymap_faults(keymap) == []
    assert usable(keymap) == keymap
    assert merged(keymap)["step.approve"] == "r"


def test_an_unknown_id_names_the_nearest() -> None:
    assert keymap_faults({"step.aprove": "f5"}) == [
        "unknown action 'step.aprove'; did you mean step.approve?"
    ]


def test_an_empty_key_is_named() -> None:
    assert any("step.skip has an empty key" in fault for fault in keymap_faults({"step.skip": ""}))


def test_the_footer_has_at_most_seven_keys_that_are_possible() -> None:
    events = recorded()
    for end in range(0, len(events) + 1, 5):
        snapshot = folded(events[:end])
        keys = footer_keys(snapshot, View())
        assert len(keys) <= FOOTER_KEYS
        assert all(key.when(snapshot, View()) for key in keys)
        assert keys[-1].id == "help"


def test_help_stays_in_a_narrow_footer() -> None:
    snapshot = folded(until_question())
    for width in (60, 70, 80, 100):
        line = footer_line(footer_keys(snapshot, View()), snapshot, width, 3600.0)
        assert line.cell_length <= width
        assert "? help" in line.plain
        assert "step 1/" in line.plain


def test_while_a_question_waits_its_answers_come_first() -> None:
    snapshot = folded(until_question())
    assert [key.id for key in footer_keys(snapshot, View())][:2] == ["step.approve", "step.reject"]


def test_before_the_engine_speaks_no_decision_is_possible() -> None:
    able = {key.id for key in KEYS if key.when(Snapshot(), View())}
    assert not able & {"step.approve", "step.skip", "run.export", "run.pause", "plan.branch"}
    assert {"help", "quit", "palette"} <= able


def test_the_documentation_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == documentation()

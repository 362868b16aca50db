"""The whole screen as text at the sizes people use; set MTMC_UPDATE_GOLDENS=1 to write anew.

The files in `golden` are reviewed like source.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from screenplay import NOWHERE, recorded, screen_text, settled, stage, until_question

from mtmc_tui.screen.settings import Settings

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("MTMC_UPDATE_GOLDENS")

SCENES: dict[str, tuple[tuple[int, int], str, tuple[str, ...]]] = {
    "question-80x24-plan": ((80, 24), "question", ()),
    "question-80x24-code": ((80, 24), "question", ("3",)),
    "question-80x24-time": ((80, 24), "question", ("5",)),
    "question-100x30": ((100, 30), "question", ()),
    "question-120x40": ((120, 40), "question", ()),
    "question-200x60": ((200, 60), "question", ()),
    "split-200x60": ((200, 60), "question", ("d",)),
    "zoomed-120x40": ((120, 40), "question", ("3", "z", "d")),
    "proving-120x40": ((120, 40), "proving", ()),
    "finished-120x40": ((120, 40), "finished", ()),
    "starting-80x24": ((80, 24), "nothing", ()),
    "help-120x40": ((120, 40), "question", ("question_mark",)),
    "help-80x24": ((80, 24), "question", ("question_mark",)),
    "export-80x24": ((80, 24), "question", ("x",)),
    "ascii-120x40": ((120, 40), "question", ()),
}


def scene(name: str) -> list:
    if name == "question":
        return until_question()
    if name == "finished":
        return recorded()
    if name == "proving":
        asked = until_question()
        at = next(n for n, e in enumerate(asked) if type(e).__name__ == "GateFinished")
        return asked[: at + 2]
    return []


@pytest.mark.parametrize("name", SCENES)
async def test_the_screen_is_as_it_was_reviewed(name: str) -> None:
    size, which, keys = SCENES[name]
    settings = Settings(NOWHERE, ascii=name.startswith("ascii"))
    async with stage(scene(which), size, settings=settings) as (app, pilot):
        await pilot.press(*keys)
        await settled(app, pilot)
        text = screen_text(app)
    path = GOLDEN / f"{name}.txt"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()

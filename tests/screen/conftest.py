"""The screen looks the same whatever the terminal of the tester is."""

import os

import pytest


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("TEXTUAL", "MTMC_")) or name in (
            "NO_COLOR",
            "COLORTERM",
            "LINES",
            "COLUMNS",
            "VISUAL",
            "EDITOR",
        ):
            monkeypatch.delenv(name)

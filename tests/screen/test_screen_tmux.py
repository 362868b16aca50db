"""The whole product in a terminal multiplexer: real engine, real terminal, keys, captured text."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tmux import ROOT, Tmux

SAMPLE = ROOT / "samples" / "softmax.py"
SIZES = [(80, 24), (120, 40)]

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param


@pytest.fixture
def window(size: tuple[int, int], tmp_path: Path) -> Iterator[Tmux]:
    command = [sys.executable, "-m", "mtmc_tui.cli", str(SAMPLE), "--planner", "roofline"]
    tmux = Tmux(tmp_path, size, [*command, "--target", "sm_90"])
    yield tmux
    tmux.close()


def test_a_step_is_approved_help_is_read_and_the_terminal_comes_back(
    window: Tmux, size: tuple[int, int]
) -> None:
    asked = window.until("keep lower r1?", "a approve")
    assert "softmax.py" in asked
    assert "estimates" in asked
    assert "≈" in asked
    if size == (80, 24):
        assert "1 Plan   2 Regions   3 Code" in asked
        window.press("3")
        window.until("@triton.jit")
        window.press("4")
        window.until("✓ values", "registers")
        window.press("5")
        window.until("ESTIMATED, not measured", "floor", "░")
        window.press("1")
    else:
        for text in ("@triton.jit", "✓ values", "ESTIMATED, not measured", "floor", "░"):
            assert text in asked
    window.press("a")
    window.until("lower r1", "best")
    window.press("?")
    window.until("Help", "approve this step", "esc closes")
    window.press("Escape")
    window.until_gone("esc closes")
    window.press("q")
    window.until("Quit while the run goes on?")
    window.press("y")
    back = window.until("exit code 0", seconds=5)
    assert "is kept: go on with it with --resume." in back
    assert "Plan" not in back

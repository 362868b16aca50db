"""The whole product in a terminal multiplexer: real engine, real terminal, keys, captured text."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "softmax.py"
SIZES = [(80, 24), (120, 40)]

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


class Tmux:
    """A server of its own with one window that runs a command."""

    def __init__(self, folder: Path, size: tuple[int, int], command: list[str]) -> None:
        self._socket = str(folder / "tmux")
        environment = {
            "MTMC_HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "LANG": "C.UTF-8",
        }
        words = ["env", *(f"{name}={value}" for name, value in environment.items()), *command]
        script = f"{shlex.join(words)}; echo exit code $?; exec sleep 600"
        size_words = ["-x", str(size[0]), "-y", str(size[1])]
        self._run("-f", "/dev/null", "new-session", "-d", *size_words, "sh", "-c", script)

    def _run(self, *words: str) -> str:
        command = ["tmux", "-u", "-S", self._socket, *words]
        environment = {**os.environ, "LANG": "C.UTF-8"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=30, env=environment
        )
        return done.stdout

    def screen(self) -> str:
        """What the window shows."""
        return self._run("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """Type keys by tmux's names."""
        self._run("send-keys", *keys)

    def until(self, *texts: str, seconds: float = 60.0) -> str:
        """The screen once it shows all `texts`."""
        return self._once(lambda screen: all(text in screen for text in texts), texts, seconds)

    def until_gone(self, text: str, seconds: float = 10.0) -> str:
        """The screen once it does not show `text` any more."""
        return self._once(lambda screen: text not in screen, ("gone:", text), seconds)

    def _once(self, done: Callable[[str], bool], what: tuple[str, ...], seconds: float) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            screen = self.screen()
            if done(screen):
                return screen
            time.sleep(0.1)
        raise AssertionError(f"{what} never came; the screen is\n{self.screen()}")

    def close(self) -> None:
        """End the server with everything in it."""
        self._run("kill-server")


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def window(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tmux]:
    command = [sys.executable, "-m", "mtmc_tui.cli", str(SAMPLE), "--planner", "roofline"]
    tmux = Tmux(tmp_path, request.param, [*command, "--target", "sm_90"])
    yield tmux
    tmux.close()


def test_a_step_is_approved_help_is_read_and_the_terminal_comes_back(window: Tmux) -> None:
    asked = window.until("keep lower r1?", "a approve")
    assert "softmax.py" in asked
    assert "estimates" in asked
    assert "≈" in asked
    width = 120 if "3 Code  diff" in asked and "1 Plan ─" in asked else 80
    if width == 80:
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

"""A terminal multiplexer with one window: a command on a real terminal, its keys and its text."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
        # The size is the window's: test processes tell their children one of 80 columns.
        unset = ["-u", "COLUMNS", "-u", "LINES"]
        words = [
            "env",
            *unset,
            *(f"{name}={value}" for name, value in environment.items()),
            *command,
        ]
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

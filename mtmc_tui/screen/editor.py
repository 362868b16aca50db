"""The user's own editor, on a program or on the user's file."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path


def editor_command(environment: Mapping[str, str] = os.environ) -> list[str]:
    """$VISUAL, else $EDITOR, else vi, as words."""
    return shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "vi")


def edit_text(source: str, name: str) -> str:
    """The text as the user leaves it. Blocks; the terminal must be free.

    Raises OSError where the editor cannot be started, CalledProcessError where it fails.
    """
    with tempfile.TemporaryDirectory(prefix="mtmc-edit-") as folder:
        path = Path(folder) / name
        path.write_text(source, "utf-8")
        edit_file(path)
        return path.read_text("utf-8")


def edit_file(path: Path) -> None:
    """Open a file. Blocks; raises as `edit_text` does."""
    subprocess.run([*editor_command(), str(path)], check=True)

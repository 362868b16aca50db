"""The log of what should not have happened."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

import platformdirs


def record(error: BaseException) -> Path:
    """Append the traceback to the engine's log ($MTMC_LOG or a file of its own): its path."""
    path = _log()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as log:
        log.write(time.strftime("%Y-%m-%d %H:%M:%S\n"))
        log.writelines(traceback.format_exception(error))
    return path


def sentence(error: BaseException, log: Path) -> str:
    """What the user is told."""
    return f"Something unexpected happened ({type(error).__name__}: {error}); see {log}."


def _log() -> Path:
    given = os.environ.get("MTMC_LOG")
    if given:
        return Path(given)
    home = os.environ.get("MTMC_HOME")
    folder = Path(home) / "logs" if home else platformdirs.user_log_path("mtmc-tui")
    return folder / f"engine-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"

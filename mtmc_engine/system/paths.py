"""Where things live on this machine: journals, caches, configuration."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from mtmc_engine.core.errors import UsageError

_APP = "mtmc-tui"


def _at_home(name: str) -> Path | None:
    """A folder in $MTMC_HOME, which holds everything where it is set."""
    home = os.environ.get("MTMC_HOME")
    return Path(home).absolute() / name if home else None


def data_folder() -> Path:
    """Folder of the user's data: $MTMC_HOME, or the system's place for it."""
    return _at_home("") or platformdirs.user_data_path(_APP)


def journals_folder() -> Path:
    """Folder of the sessions' journals."""
    return data_folder() / "journals"


def cache_folder() -> Path:
    """Folder of what can be made again, such as kernels compiled for capture and estimates."""
    return _at_home("cache") or platformdirs.user_cache_path(_APP)


def config_folder() -> Path:
    """Folder of configuration and themes: $MTMC_CONFIG, $MTMC_HOME/config, the system's place."""
    chosen = os.environ.get("MTMC_CONFIG")
    if chosen:
        return Path(chosen)
    return _at_home("config") or platformdirs.user_config_path(_APP)


def made(folder: Path) -> Path:
    """The folder, made if it is missing. Raises UsageError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made ({error.strerror}): free the place or choose another."
        ) from error
    return folder

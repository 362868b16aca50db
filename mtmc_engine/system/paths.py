"""Where things live on this machine: journals, caches, configuration."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from mtmc_engine.core.errors import UsageError

_APP = "mtmc-tui"


def data_folder() -> Path:
    """Folder of the user's data."""
    return platformdirs.user_data_path(_APP)


def journals_folder() -> Path:
    """Folder of the sessions' journals."""
    return data_folder() / "journals"


def cache_folder() -> Path:
    """Folder of what can be made again, such as kernels compiled for capture and estimates."""
    return platformdirs.user_cache_path(_APP)


def config_folder() -> Path:
    """Folder of the user's configuration and themes."""
    return platformdirs.user_config_path(_APP)


def made(folder: Path) -> Path:
    """The folder, made if it is missing. Raises UsageError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made ({error.strerror}): free the place or choose another."
        ) from error
    return folder

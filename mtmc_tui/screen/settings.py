"""What the user has chosen for the screen: environment first, then `screen.toml`."""

from __future__ import annotations

import locale
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

KNOWN = ("theme", "ascii", "bell", "keys")


@dataclass(frozen=True)
class Settings:
    """Looks and keys of the screen.

    folder: the user's configuration folder; its `themes` are loaded and followed.
    theme:  a theme's name; "" for the default.
    bell:   ring when a question waits.
    keymap: action ids of the keys table -> comma-separated keys.
    faults: one sentence for each thing in `screen.toml` that cannot be used.
    """

    folder: Path
    theme: str = ""
    ascii: bool = False
    bell: bool = False
    keymap: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()

    @property
    def themes_folder(self) -> Path:
        """Where the user keeps themes."""
        return self.folder / "themes"


def config_folder(environment: Mapping[str, str]) -> Path:
    """$MTMC_CONFIG, $MTMC_HOME/config, or the system's place for configuration."""
    if environment.get("MTMC_CONFIG"):
        return Path(environment["MTMC_CONFIG"])
    if environment.get("MTMC_HOME"):
        return Path(environment["MTMC_HOME"]) / "config"
    from platformdirs import user_config_path

    return user_config_path("mtmc-tui")


def load_settings(
    theme: str | None = None, environment: Mapping[str, str] = os.environ
) -> Settings:
    """Settings of this run; `theme` is the command line's and wins.

    MTMC_THEME, MTMC_ASCII and MTMC_BELL win over the file.
    """
    folder = config_folder(environment)
    document, faults = _read(folder / "screen.toml")
    keys = document.get("keys", {})
    return Settings(
        folder=folder,
        theme=theme or environment.get("MTMC_THEME") or document.get("theme", ""),
        ascii=_switch(environment, "MTMC_ASCII", document.get("ascii", not _utf8())),
        bell=_switch(environment, "MTMC_BELL", document.get("bell", False)),
        keymap=keys,
        faults=tuple(faults),
    )


def _read(path: Path) -> tuple[dict[str, Any], list[str]]:
    if not path.is_file():
        return {}, []
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return {}, [f"{path.name}: cannot be read as TOML: {error}"]
    faults = []
    for key in [key for key in document if key not in KNOWN]:
        near = get_close_matches(key, KNOWN, n=1, cutoff=0.0)[0]
        faults.append(f"{path.name}: unknown key {key}; did you mean {near}?")
    wanted: dict[str, type] = {"theme": str, "ascii": bool, "bell": bool, "keys": dict}
    for key, kind in wanted.items():
        if key in document and not isinstance(document[key], kind):
            faults.append(f"{path.name}: {key} must be of type {kind.__name__}")
            del document[key]
    for name, keys in list(document.get("keys", {}).items()):
        if not isinstance(keys, str):
            faults.append(f'{path.name}: keys."{name}" must be text, such as "f5"')
            del document["keys"][name]
    return document, faults


def _switch(environment: Mapping[str, str], name: str, otherwise: bool) -> bool:
    value = environment.get(name, "")
    return otherwise if value == "" else value.lower() not in ("0", "no", "false", "off")


def _utf8() -> bool:
    return "utf" in locale.getpreferredencoding(False).lower()

"""Themes: TOML files, checked key by key and colour by colour, made into Textual themes."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from mtmc_engine.core.errors import UsageError

SHIPPED = Path(__file__).parents[2] / "themes"
DEFAULT = "mtmc-dark"
MONOCHROME = "mtmc-mono"

SECTIONS: dict[str, tuple[str, ...]] = {
    "colors": (
        "primary",
        "secondary",
        "accent",
        "foreground",
        "background",
        "surface",
        "panel",
        "boost",
        "warning",
        "error",
        "success",
    ),
    "states": (
        "proposed",
        "running",
        "approved",
        "rejected",
        "failed",
        "faster",
        "slower",
        "estimated",
    ),
    "diff": (
        "added",
        "added-word",
        "added-sign",
        "removed",
        "removed-word",
        "removed-sign",
        "hunk",
    ),
    "syntax": ("comment", "keyword", "string", "number", "builtin", "function", "decorator"),
    "meta": ("author", "license", "description", "url"),
}
TOP_LEVEL = ("name", "dark", *SECTIONS)
VARIABLE_PREFIX = {"states": "state", "diff": "diff", "syntax": "syntax"}


@dataclass(frozen=True)
class Loaded:
    """Themes that can be used, and one sentence for each fault found on the way."""

    themes: tuple[Theme, ...]
    faults: tuple[str, ...]


def load_folder(folder: Path) -> Loaded:
    """All `*.toml` of a folder; a file with a fault is left out. A missing folder is empty."""
    themes, faults = [], []
    for path in sorted(folder.glob("*.toml")):
        theme, found = load_file(path)
        faults += found
        if theme is not None:
            themes.append(theme)
    return Loaded(tuple(themes), tuple(faults))


def load_file(path: Path) -> tuple[Theme | None, list[str]]:
    """The theme of a file, or None with every fault that it has."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return None, [f"{path.name}: cannot be read as TOML: {error}"]
    faults = [f"{path.name}: {fault}" for fault in faults_of(document)]
    if faults:
        return None, faults
    return _theme(document, path.stem), []


def faults_of(document: dict[str, Any]) -> list[str]:
    """Everything that is wrong with a theme's document, one sentence each."""
    faults = [_unknown(key, TOP_LEVEL, "") for key in document if key not in TOP_LEVEL]
    if not isinstance(document.get("name", ""), str):
        faults.append("name must be text")
    if not isinstance(document.get("dark", True), bool):
        faults.append("dark must be true or false")
    for section, known in SECTIONS.items():
        values = document.get(section, {})
        if not isinstance(values, dict):
            faults.append(f"{section} must be a table")
            continue
        for key, value in values.items():
            if key not in known:
                faults.append(_unknown(key, known, section + "."))
            elif section != "meta":
                faults += _colour_fault(f"{section}.{key}", value)
    colors = document.get("colors", {})
    if isinstance(colors, dict) and "primary" not in colors:
        faults.append("colors.primary is missing: it is the one colour that a theme must have")
    return faults


def check_name(name: str, user_folder: Path | None = None) -> None:
    """Raises UsageError, naming the nearest, where no theme has that name."""
    names = [theme.name for theme in load_folder(SHIPPED).themes] + list(BUILTIN_THEMES)
    if user_folder is not None:
        names += [theme.name for theme in load_folder(user_folder).themes]
    if name not in names:
        raise UsageError(f"Unknown theme {name!r}{_nearest(name, names)}")


def variable_defaults(theme: Theme) -> dict[str, str]:
    """A value for each variable of ours, made from the theme's own colours.

    Textual's own themes know none of them and would not paint without.
    """
    made = theme.to_color_system().generate()
    ansi = theme.ansi
    return {
        "quiet": made["foreground-muted"],
        "faint": made.get("foreground-disabled", made["foreground-muted"]),
        "state-proposed": made["text-primary"],
        "state-running": made["text-warning"],
        "state-approved": made["text-success"],
        "state-rejected": made["foreground-muted"],
        "state-failed": made["text-error"],
        "state-faster": made["text-success"],
        "state-slower": made["text-warning"],
        "state-estimated": made["text-secondary"],
        "diff-added": "transparent" if ansi else made["success-muted"],
        "diff-added-word": "transparent" if ansi else made["success-muted"],
        "diff-added-sign": made["text-success"],
        "diff-removed": "transparent" if ansi else made["error-muted"],
        "diff-removed-word": "transparent" if ansi else made["error-muted"],
        "diff-removed-sign": made["text-error"],
        "diff-hunk": made["text-secondary"],
        "syntax-comment": made["foreground-muted"],
        "syntax-keyword": made["text-accent"],
        "syntax-string": made["text-success"],
        "syntax-number": made["text-warning"],
        "syntax-builtin": made["text-secondary"],
        "syntax-function": made["text-primary"],
        "syntax-decorator": made["text-accent"],
    }


def _theme(document: dict[str, Any], stem: str) -> Theme:
    variables = {
        f"{prefix}-{key}": value
        for section, prefix in VARIABLE_PREFIX.items()
        for key, value in document.get(section, {}).items()
    }
    return Theme(
        name=document.get("name", stem),
        dark=document.get("dark", True),
        variables=variables,
        **document["colors"],
    )


def _colour_fault(key: str, value: Any) -> list[str]:
    if not isinstance(value, str):
        return [f"{key} must be a colour in quotes, not {value!r}"]
    try:
        Color.parse(value)
    except ColorParseError:
        return [f"{key} = {value!r} is not a colour: write #rrggbb or a colour's name"]
    return []


def _unknown(key: str, known: tuple[str, ...], prefix: str) -> str:
    return f"unknown key {prefix}{key}{_nearest(key, known)}"


def _nearest(word: str, known: tuple[str, ...] | list[str]) -> str:
    found = get_close_matches(word, known, n=1, cutoff=0.0)
    return f"; did you mean {found[0]}?" if found else ""

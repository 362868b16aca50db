"""The theme loader: every fault named, defaults for every variable, shipped themes complete."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from screenplay import screen_text, stage, until_question
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from mtmc_engine.core.errors import UsageError
from mtmc_tui.screen.settings import Settings
from mtmc_tui.screen.themes import (
    SECTIONS,
    SHIPPED,
    VARIABLE_PREFIX,
    check_name,
    faults_of,
    load_file,
    load_folder,
    variable_defaults,
)


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_the_shipped_themes_have_no_fault_and_name_every_key() -> None:
    loaded = load_folder(SHIPPED)
    assert loaded.faults == ()
    names = {theme.name for theme in loaded.themes}
    assert names == {"mtmc-dark", "mtmc-light", "mtmc-contrast", "mtmc-mono"}
    expected = {
        f"{VARIABLE_PREFIX[section]}-{key}"
        for section in VARIABLE_PREFIX
        for key in SECTIONS[section]
    }
    for theme in loaded.themes:
        assert set(theme.variables) == expected


def contrast(one: Color, other: Color) -> float:
    """Contrast ratio of WCAG 2.1: 1 to 21."""

    def luminance(color: Color) -> float:
        parts = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_words_of_state_and_syntax_can_be_read() -> None:
    for theme in load_folder(SHIPPED).themes:
        ground = Color.parse(theme.background or "#000000")
        least = 7.0 if theme.name == "mtmc-contrast" else 4.5
        for name, value in theme.variables.items():
            if not name.startswith("diff-") or name.endswith(("-sign", "hunk")):
                assert contrast(Color.parse(value), ground) >= least, (theme.name, name)


def test_the_contrast_theme_uses_neither_red_nor_green() -> None:
    theme = next(theme for theme in load_folder(SHIPPED).themes if theme.name == "mtmc-contrast")
    good, bad = (
        Color.parse(theme.variables["state-faster"]),
        Color.parse(theme.variables["state-failed"]),
    )
    assert good.b > good.r
    assert good.b > good.g
    assert bad.r > bad.b
    assert bad.g > bad.b


def test_only_primary_is_required(tmp_path: Path) -> None:
    theme, faults = load_file(write(tmp_path, "own.toml", '[colors]\nprimary = "#ff8800"\n'))
    assert faults == []
    assert theme is not None
    assert theme.name == "own"
    assert theme.dark


def test_every_fault_of_a_file_is_named_at_once() -> None:
    faults = faults_of(
        {
            "nmae": "x",
            "dark": "yes",
            "colors": {"primry": "#fff", "accent": "#gg0000"},
            "states": {"faster": 3},
            "difff": {},
        }
    )
    text = "\n".join(faults)
    assert "unknown key nmae; did you mean name?" in text
    assert "unknown key difff; did you mean diff?" in text
    assert "unknown key colors.primry; did you mean primary?" in text
    assert "dark must be true or false" in text
    assert "colors.accent = '#gg0000' is not a colour" in text
    assert "states.faster must be a colour in quotes" in text
    assert "colors.primary is missing" in text


@pytest.mark.parametrize("text", ["name = ", "\xff"])
def test_what_is_no_toml_is_a_fault(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(text.encode("latin-1"))
    theme, faults = load_file(path)
    assert theme is None
    assert len(faults) == 1


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean mtmc-dark"):
        check_name("mtmc-drak")
    write(tmp_path, "own.toml", 'name = "own"\n[colors]\nprimary = "#ff8800"\n')
    check_name("own", tmp_path)
    check_name("nord")


def test_every_theme_of_textual_has_all_our_variables() -> None:
    for theme in BUILTIN_THEMES.values():
        assert all(variable_defaults(theme).values())


@pytest.mark.parametrize(
    "name", ["mtmc-light", "mtmc-contrast", "mtmc-mono", "textual-dark", "ansi-dark", "nord"]
)
async def test_the_screen_paints_in_every_kind_of_theme(name: str, tmp_path: Path) -> None:
    settings = Settings(tmp_path, theme=name)
    async with stage(until_question(), settings=settings) as (app, _):
        assert app.theme == name
        assert "waiting" in screen_text(app)


async def test_all_theme_faults_come_in_one_notice(tmp_path: Path) -> None:
    write(tmp_path / "themes", "a.toml", '[colors]\nprimry = "#fff"\n')
    write(tmp_path / "themes", "b.toml", '[colors]\nprimary = "no colour"\n')
    async with stage([], settings=Settings(tmp_path)) as (app, _):
        notices = [n for n in app._notifications if n.title == "Themes"]
        assert len(notices) == 1
        assert "a.toml: unknown key colors.primry" in notices[0].message
        assert "b.toml: colors.primary" in notices[0].message


async def test_a_saved_theme_is_repainted(tmp_path: Path) -> None:
    path = write(tmp_path / "themes", "own.toml", 'name = "own"\n[colors]\nprimary = "#ff8800"\n')
    async with stage([], settings=Settings(tmp_path, theme="own")) as (app, pilot):
        await pilot.pause(0.5)
        path.write_text('name = "own"\n[colors]\nprimary = "#00ff00"\n')
        for _ in range(40):
            await asyncio.sleep(0.1)
            if app.current_theme.primary == "#00ff00":
                break
        assert app.current_theme.primary == "#00ff00"
        await pilot.pause()
        assert app.main.plan.styles.border_top[1] == Color.parse("#00ff00")


async def test_without_colour_the_monochrome_theme_is_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(until_question(), settings=Settings(tmp_path)) as (app, _):
        assert app.theme == "mtmc-mono"
        assert "waiting" in screen_text(app)

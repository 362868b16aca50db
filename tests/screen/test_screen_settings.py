"""screen.toml and the environment."""

from __future__ import annotations

from pathlib import Path

from screenplay import stage, until_question

from mtmc_tui.screen.settings import Settings, config_folder, load_settings


def settings(folder: Path, text: str = "", **environment: str) -> Settings:
    if text:
        (folder / "screen.toml").write_text(text)
    return load_settings(environment={"MTMC_CONFIG": str(folder), **environment})


def test_the_file_then_the_environment_then_the_command_line(tmp_path: Path) -> None:
    text = 'theme = "nord"\nascii = true\nbell = true\n[keys]\n"step.approve" = "f5"\n'
    found = settings(tmp_path, text)
    assert (found.theme, found.ascii, found.bell) == ("nord", True, True)
    assert found.keymap == {"step.approve": "f5"}
    found = settings(tmp_path, MTMC_THEME="dracula", MTMC_ASCII="0")
    assert (found.theme, found.ascii) == ("dracula", False)
    assert load_settings("gruvbox", {"MTMC_CONFIG": str(tmp_path)}).theme == "gruvbox"


def test_faults_are_named_and_the_rest_is_used(tmp_path: Path) -> None:
    text = 'theme = "nord"\nbel = true\nascii = "yes"\n[keys]\n"step.skip" = 5\n'
    found = settings(tmp_path, text)
    assert found.theme == "nord"
    said = "\n".join(found.faults)
    assert "unknown key bel; did you mean bell?" in said
    assert "ascii must be of type bool" in said
    assert 'keys."step.skip" must be text' in said
    assert found.keymap == {}


def test_a_broken_file_is_a_fault(tmp_path: Path) -> None:
    assert "cannot be read as TOML" in settings(tmp_path, "theme = ").faults[0]


def test_the_folder() -> None:
    assert config_folder({"MTMC_HOME": "/h"}) == Path("/h/config")
    assert config_folder({}).name == "mtmc-tui"


async def test_a_users_key_works_and_the_old_one_does_not(tmp_path: Path) -> None:
    own = Settings(tmp_path, keymap={"pane.zoom": "f6"})
    async with stage(until_question(), settings=own) as (app, pilot):
        await pilot.press("z")
        assert not app.main.view.zoomed
        await pilot.press("f6")
        assert app.main.view.zoomed


async def test_a_clash_is_reported_and_no_binding_is_lost(tmp_path: Path) -> None:
    own = Settings(tmp_path, keymap={"step.approve": "r"})
    async with stage(until_question(), settings=own) as (app, pilot):
        messages = [notice.message for notice in app._notifications]
        assert any("step.approve" in text and "step.reject" in text for text in messages)
        await pilot.press("R")
        assert type(app.screen).__name__ == "Ask"

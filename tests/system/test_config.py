"""Configuration files: which one counts, and what is refused."""

from __future__ import annotations

import pytest

from mtmc_engine.core.errors import UsageError
from mtmc_engine.system import config, paths
from mtmc_engine.system.config import Config, config_file, load_config
from mtmc_engine.system.jobs import Limits


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def refusal(tmp_path, text):
    path = tmp_path / "some.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_config(path)
    return str(caught.value)


def test_defaults_without_a_file():
    assert config_file() is None
    assert load_config() == Config()
    assert load_config().limits.limits() == Limits()


def test_the_nearest_file_wins(tmp_path):
    users = paths.made(paths.config_folder()) / config.FILE_NAME
    users.write_text('planner = "uniform"\nsteps = 3\n')
    assert (load_config().planner, load_config().steps) == ("uniform", 3)
    (tmp_path / "here" / config.FILE_NAME).write_text('planner = "roofline"\n')
    assert (load_config().planner, load_config().steps) == ("roofline", 8)


def test_all_settings(tmp_path):
    path = tmp_path / "all.toml"
    path.write_text(
        'planner = "llama"\ncoder = "builtin"\ntarget = "sm_80"\ntheme = "paper"\nsteps = 4\n'
        'mix = 0.25\nnormalise = "token"\n[limits]\nwall_s = 30\nmemory_mb = 1000\n'
        'output_kb = 64\n[keymap]\napprove = "a,enter"\n'
    )
    read = load_config(path)
    assert (read.mix, read.normalise, read.theme) == (0.25, "token", "paper")
    assert read.limits.limits() == Limits(30, 1000, 64)
    assert read.keymap == {"approve": "a,enter"}


def test_an_unknown_key_names_the_nearest(tmp_path):
    assert 'unknown key "planer"; did you mean "planner"?' in refusal(tmp_path, 'planer = "x"')
    text = refusal(tmp_path, "[limits]\nmemory = 5")
    assert 'unknown key "limits.memory"; did you mean "limits.memory_mb"?' in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('steps = "many"', "steps: expected `int`"),
        ("steps = 0", "steps: "),
        ("mix = 1.5", "mix: "),
        ("[limits]\nwall_s = 0", "limits.wall_s: "),
        ('normalise = "letters"', "normalise: "),
        ("limits = 3", "limits: "),
        ("steps = ", "not valid TOML"),
        ("[keymap]\napprove = 3", "keymap"),
    ],
)
def test_wrong_values_are_said(tmp_path, text, said):
    assert said in refusal(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        load_config(tmp_path / "absent.toml")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be made"):
        paths.made(tmp_path / "file" / "folder")


def test_folders_follow_the_platform(tmp_path):
    assert paths.journals_folder().is_relative_to(tmp_path / "data")
    assert paths.cache_folder().is_relative_to(tmp_path / "cache")

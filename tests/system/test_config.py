"""Configuration files: which one counts, and what is refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from mtmc_engine.core.errors import UsageError
from mtmc_engine.proof.subject import Bounds
from mtmc_engine.system import config, paths
from mtmc_engine.system.config import Config, config_file, load_config
from mtmc_engine.system.jobs import Limits

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    for name in ("MTMC_HOME", "MTMC_CONFIG"):
        monkeypatch.delenv(name, raising=False)
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
    assert load_config().limits.of(120) == Limits()


def test_the_nearest_file_wins(tmp_path):
    users = paths.made(paths.config_folder()) / config.FILE_NAME
    users.write_text('planner = "uniform"\nsteps = 3\n')
    assert (load_config().planner, load_config().steps) == ("uniform", 3)
    (tmp_path / "here" / config.FILE_NAME).write_text('planner = "roofline"\n')
    assert (load_config().planner, load_config().steps) == ("roofline", 8)


def test_all_settings(tmp_path):
    path = tmp_path / "all.toml"
    path.write_text(
        'planner = "llama"\ncoder = "builtin"\ntarget = "sm_80"\nsteps = 4\nmix = 0.25\n'
        'normalise = "token"\nconfine = false\n[limits]\ncapture_s = 10\ncompile_s = 20\n'
        "reference_s = 30\nvalues_s = 40\ntiming_s = 50.5\nmemory_mb = 1000\noutput_kb = 64\n"
        "processes = 32\ndisk_mb = 500\n"
    )
    read = load_config(path)
    assert (read.mix, read.normalise, read.confine) == (0.25, "token", False)
    assert read.limits.of(30) == Limits(30, 1000, 64, 32, 500)
    bounds = Bounds.of(read.limits)
    assert (bounds.compile_s, bounds.reference_s, bounds.values_s) == (20, 30, 40)
    assert (bounds.timing_s, bounds.processes, bounds.disk_mb) == (50.5, 32, 500)


def test_the_settings_page_tells_every_setting_with_its_default():
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    told = {name: tomllib.loads(f"value = {default}")["value"] for name, default in rows}
    unset = re.findall(r"^\| `(\w+)` \| none \|", PAGE.read_text(), re.MULTILINE)
    told |= dict.fromkeys(unset)
    defaults = msgspec.to_builtins(Config())
    assert told == {**{k: v for k, v in defaults.items() if k != "limits"}, **defaults["limits"]}


def test_one_variable_moves_everything(monkeypatch, tmp_path):
    monkeypatch.setenv("MTMC_HOME", str(tmp_path / "all"))
    assert paths.journals_folder() == tmp_path / "all" / "journals"
    assert paths.config_folder() == tmp_path / "all" / "config"
    assert paths.cache_folder() == tmp_path / "all" / "cache"
    monkeypatch.setenv("MTMC_CONFIG", str(tmp_path / "mine"))
    assert paths.config_folder() == tmp_path / "mine"


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
        ("[limits]\nvalues_s = 0", "limits.values_s: "),
        ('normalise = "letters"', "normalise: "),
        ("limits = 3", "limits: "),
        ("steps = ", "not valid TOML"),
        ("confine = 3", "confine: "),
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

"""Scratch folders: gone at the end, and swept up after a run that was killed."""

import os
import subprocess
import sys

from mtmc_engine.system.scratch import PREFIX, remove_left_over, scratch_folder, scratch_of


def test_folder_is_gone_at_the_end():
    with scratch_folder() as folder:
        (folder / "truth.pt").write_bytes(b"1")
    assert not folder.exists()


def test_only_those_of_dead_processes_are_swept(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = tmp_path / f"{PREFIX}{ended.pid}-a"
    living = tmp_path / f"{PREFIX}{os.getpid()}-b"
    foreign = tmp_path / "mtmc-else"
    for folder in (dead, living, foreign):
        folder.mkdir()
        (folder / "file").write_text("x")
    remove_left_over(tmp_path)
    assert not dead.exists()
    assert living.exists()
    assert foreign.exists()


def test_folder_goes_with_its_owner():
    class Owner:
        pass

    owner = Owner()
    folder = scratch_of(owner)
    (folder / "file").write_text("x")
    del owner
    assert not folder.exists()

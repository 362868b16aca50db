"""What is said where --resume finds nothing to go on with: the session's name and the reason."""

import time

import msgspec
import pytest

from mtmc_engine.core.options import RunOptions
from mtmc_engine.session.journal import Journal
from mtmc_engine.session.restore import find_unfinished
from mtmc_engine.system.devices import card

DIGEST = "a" * 64


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "journals"


def session(folder, file, stopped_by, target="H200", digest=DIGEST):
    journal = Journal.create(folder, file.stem)
    facts = {"file": str(file), "digest": digest, "target": target, "task": {}}
    for name, value in {**facts, "stopped_by": stopped_by, "created": time.time()}.items():
        journal.set_fact(name, value)
    journal.close()
    return journal.session


def found(folder, file, digest=DIGEST, target="sm_90"):
    return find_unfinished(folder, RunOptions(str(file)), 16, digest, card(target))


def test_a_finished_session_is_named_with_what_to_do(folder, tmp_path):
    name = session(folder, tmp_path / "op.py", "planner")
    entry, remark = found(folder, tmp_path / "op.py")
    assert entry is None
    assert f"{name} of {tmp_path / 'op.py'} is finished" in remark
    assert f"mtmc-tui export {name} DIR" in remark


@pytest.mark.parametrize("stopped_by", ["", "user", "error"])
def test_an_unfinished_one_is_gone_on_with(folder, tmp_path, stopped_by):
    name = session(folder, tmp_path / "op.py", stopped_by)
    entry, remark = found(folder, tmp_path / "op.py")
    assert (entry.session, remark) == (name, "")


def test_a_finished_one_does_not_hide_an_older_unfinished_one(folder, tmp_path):
    name = session(folder, tmp_path / "op.py", "user")
    session(folder, tmp_path / "op.py", "planner")
    assert found(folder, tmp_path / "op.py")[0].session == name


def test_another_target_is_named(folder, tmp_path):
    name = session(folder, tmp_path / "op.py", "user")
    entry, remark = found(folder, tmp_path / "op.py", target="sm_80")
    assert entry is None
    assert f"{name} is for H200, not for A100" in remark


def test_changed_content_is_named(folder, tmp_path):
    name = session(folder, tmp_path / "op.py", "user")
    entry, remark = found(folder, tmp_path / "op.py", digest="b" * 64)
    assert entry is None
    assert f"has changed since session {name}" in remark


def test_the_same_content_under_another_name_is_named(folder, tmp_path):
    name = session(folder, tmp_path / "before.py", "user")
    entry, remark = found(folder, tmp_path / "op.py")
    assert entry is None
    assert f"Session {name} is of {tmp_path / 'before.py'}" in remark


def test_nothing_at_all(folder, tmp_path):
    folder.mkdir()
    entry, remark = found(folder, tmp_path / "op.py")
    assert entry is None
    assert (
        remark == f"There is no unfinished session of {tmp_path / 'op.py'}. This one starts anew."
    )


def test_options_out_of_bounds_do_not_decode():
    for field, value in [("seed", -1), ("seed", 2**64), ("steps", 0), ("until", 1.0)]:
        text = msgspec.json.encode({"file": "op.py", field: value})
        with pytest.raises(msgspec.MsgspecError):
            msgspec.json.decode(text, type=RunOptions)

"""The sessions of a journal folder."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from mtmc_engine.core.errors import UsageError
from mtmc_engine.session import locks
from mtmc_engine.session.journal import SUFFIX, Journal, lock_path, session_name
from mtmc_engine.system import paths

# Endings after which nothing is left to do; after the others a session can be resumed.
COMPLETE = ("planner", "steps", "until")


def journals_folder() -> Path:
    """Folder of the journals; in $MTMC_HOME where that is set."""
    home = os.environ.get("MTMC_HOME")
    return Path(home).absolute() / "journals" if home else paths.journals_folder()


class SessionEntry(Struct, frozen=True):
    """One line of the list of sessions.

    created: seconds since 1970. steps: how many were decided.
    state: "running", "finished", "unfinished" or "unreadable"; `problem` is then a sentence.
    stopped_by: as in SessionFinished; "" for a run that was killed.
    has_task: whether the run came so far as to understand the file.
    """

    session: str
    path: str
    created: float
    state: str
    file: str = ""
    digest: str = ""
    target: str = ""
    steps: int = 0
    stopped_by: str = ""
    problem: str = ""
    has_task: bool = False


def list_sessions(folder: Path) -> list[SessionEntry]:
    """All sessions of the folder, newest first; damaged ones are listed as such."""
    entries = [_entry(path) for path in folder.glob(f"*{SUFFIX}")]
    return sorted(entries, key=lambda entry: (entry.created, entry.session), reverse=True)


def find_session(folder: Path, name: str) -> Path:
    """The journal of a session by its name or an unambiguous beginning of it."""
    paths = {session_name(path): path for path in folder.glob(f"*{SUFFIX}")}
    if name in paths:
        return paths[name]
    matches = sorted(known for known in paths if name and known.startswith(name))
    if len(matches) == 1:
        return paths[matches[0]]
    if matches:
        raise UsageError(f"Several sessions begin with '{name}': {', '.join(matches[:4])}.")
    raise UsageError(f"There is no session '{name}'; `mtmc-tui sessions` lists them.")


def _entry(path: Path) -> SessionEntry:
    try:
        journal = Journal.read(path)
        try:
            return _read_entry(journal)
        finally:
            journal.close()
    except UsageError as error:
        return SessionEntry(
            session=session_name(path),
            path=str(path),
            created=path.stat().st_mtime,
            state="unreadable",
            problem=str(error),
        )


def _read_entry(journal: Journal) -> SessionEntry:
    stopped_by = journal.fact("stopped_by") or ""
    running = locks.held(lock_path(journal.path))
    return SessionEntry(
        session=journal.session,
        path=str(journal.path),
        created=journal.fact("created") or journal.path.stat().st_mtime,
        state="running" if running else "finished" if stopped_by in COMPLETE else "unfinished",
        file=journal.fact("file") or "",
        digest=journal.fact("digest") or "",
        target=journal.fact("target") or "",
        steps=journal.decided_steps(),
        stopped_by=stopped_by,
        has_task=journal.fact("task") is not None,
    )

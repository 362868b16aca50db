"""The journal: one SQLite file a session, from which a killed run goes on."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import AnyEvent, Decided, NodeAdded, decode_event, encode
from mtmc_engine.core.program import Program, Schedule
from mtmc_engine.core.verdict import Verdict

SCHEMA_VERSION = 1
APPLICATION_ID = 0x4D544D43  # "MTMC" in SQLite's header: tells a journal from any other database
SUFFIX = ".mtmc.db"

SCHEMA = """
create table facts (name text primary key, value text not null);
create table events (seq integer primary key, at real not null, kind text not null,
                     body text not null);
create table programs (node text primary key, parent text, digest text not null,
                       source text not null, schedule text not null, at real not null);
create table verdicts (node text primary key, class text not null, body text not null,
                       at real not null);
create table decisions (seq integer primary key, step integer not null, node text not null,
                        kind text not null, phrase text not null, choice text not null,
                        by text not null, reason text not null, at real not null);
create table samples (node text not null, contestant text not null, time_us real not null,
                      samples_us text not null);
"""


class Journal:
    """One session on disk. Each call is durable when it returns; there is one writer.

    Made by `create` and `reopen`; `read` opens one for looking only. All raise UsageError for
    a file that is not a journal, is damaged or is of another version.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: int | None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock

    @classmethod
    def create(cls, folder: Path, task_name: str, vfs: str = "") -> Journal:
        """A new journal with a readable name, such as softmax-20261130-1742-ab12."""
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{task_name}-{time.strftime('%Y%m%d-%H%M')}-{secrets.token_hex(2)}"
        path = folder / f"{stem}{SUFFIX}"
        lock = _take_lock(path)
        with _readable_errors(path):
            connection = _connect(path, vfs)
            _choose_mode(connection)
            with connection:
                connection.executescript(SCHEMA)
                connection.execute(f"pragma application_id = {APPLICATION_ID}")
                connection.execute(f"pragma user_version = {SCHEMA_VERSION}")
        journal = cls(path, connection, lock)
        journal.set_fact("created", time.time())
        return journal

    @classmethod
    def reopen(cls, path: Path) -> Journal:
        """The journal of an earlier run, for writing on. Refused while that run lives."""
        lock = _take_lock(path)
        try:
            with _readable_errors(path):
                connection = _connect(path)
                _check_header(connection, path)
                _choose_mode(connection)
        except UsageError:
            _drop_lock(lock)
            raise
        return cls(path, connection, lock)

    @classmethod
    def read(cls, path: Path) -> Journal:
        """The journal as it stands, while its run may be writing."""
        with _readable_errors(path):
            connection = _connect(path)
            _check_header(connection, path)
            connection.execute("pragma query_only = 1")
        return cls(path, connection, None)

    @property
    def session(self) -> str:
        """Name of the session: the file's name without its suffix."""
        return self.path.name.removesuffix(SUFFIX)

    def close(self) -> None:
        """Release the file and its lock."""
        self._connection.close()
        _drop_lock(self._lock)
        self._lock = None

    # Writing

    def set_fact(self, name: str, value: Any) -> None:
        """Store one JSON value about the session, such as its task or its options."""
        with self._connection as connection:
            connection.execute(
                "insert into facts values (?, ?) on conflict do update set value = excluded.value",
                (name, msgspec.json.encode(value).decode()),
            )

    def write(self, event: AnyEvent) -> None:
        """Store an event, and what it means for the tables, in one transaction."""
        body = encode(event)
        kind = type(event).__struct_config__.tag
        with self._connection as connection:
            connection.execute(
                "insert into events (at, kind, body) values (?, ?, ?)",
                (time.time(), kind, body.decode()),
            )
            if isinstance(event, Decided):
                self._write_decision(event)
            if isinstance(event, NodeAdded) and event.verdict is not None:
                self._write_verdict(event.node, event.verdict)

    def write_program(self, node: str, parent: str | None, program: Program) -> None:
        """Store the source and schedule of a node before it is proven."""
        with self._connection as connection:
            connection.execute(
                "insert or replace into programs values (?, ?, ?, ?, ?, ?)",
                (
                    node,
                    parent,
                    program.digest,
                    program.source,
                    msgspec.json.encode(program.schedule).decode(),
                    time.time(),
                ),
            )

    def _write_decision(self, event: Decided) -> None:
        self._connection.execute(
            "insert into decisions (step, node, kind, phrase, choice, by, reason, at)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                event.step,
                event.node,
                event.action.kind,
                event.action.phrase,
                event.choice,
                event.by,
                event.reason,
                time.time(),
            ),
        )

    def _write_verdict(self, node: str, verdict: Verdict) -> None:
        body = msgspec.json.encode(verdict).decode()
        self._connection.execute(
            "insert or replace into verdicts values (?, ?, ?, ?)",
            (node, verdict.verdict.value, body, time.time()),
        )
        if verdict.measurement is None:
            return
        self._connection.execute("delete from samples where node = ?", (node,))
        self._connection.executemany(
            "insert into samples values (?, ?, ?, ?)",
            [
                (node, c.name, c.time_us, msgspec.json.encode(c.samples_us).decode())
                for c in verdict.measurement.contestants
            ],
        )

    # Reading

    def fact(self, name: str) -> Any:
        """A stored JSON value, or None."""
        with _readable_errors(self.path):
            row = self._connection.execute(
                "select value from facts where name = ?", (name,)
            ).fetchone()
        return msgspec.json.decode(row[0]) if row else None

    def events(self) -> Iterator[AnyEvent]:
        """All events, oldest first."""
        with _readable_errors(self.path):
            rows = self._connection.execute("select body from events order by seq").fetchall()
            for (body,) in rows:
                yield decode_event(body)

    def program(self, node: str) -> Program | None:
        """The stored program of a node, or None."""
        with _readable_errors(self.path):
            row = self._connection.execute(
                "select source, schedule from programs where node = ?", (node,)
            ).fetchone()
            if row is None:
                return None
            return Program(row[0], msgspec.json.decode(row[1], type=Schedule))


@dataclass(frozen=True)
class SessionEntry:
    """One line of the list of sessions; `problem` is a sentence where it cannot be read.

    state: "running", "finished", "unfinished" or "unreadable".
    """

    session: str
    path: str
    file: str
    digest: str
    created: float
    state: str
    steps: int
    stopped_by: str = ""
    problem: str = ""


def list_sessions(folder: Path) -> list[SessionEntry]:
    """All sessions of the folder, newest first; damaged ones are listed as such."""
    entries = [entry_of(path) for path in folder.glob(f"*{SUFFIX}")]
    return sorted(entries, key=lambda entry: entry.created, reverse=True)


def entry_of(path: Path) -> SessionEntry:
    """What the list shows of one journal."""
    name = path.name.removesuffix(SUFFIX)
    try:
        journal = Journal.read(path)
    except UsageError as error:
        modified = path.stat().st_mtime
        return SessionEntry(name, str(path), "", "", modified, "unreadable", 0, problem=str(error))
    try:
        stopped_by = journal.fact("stopped_by") or ""
        state = "running" if _locked(path) else "finished" if stopped_by else "unfinished"
        return SessionEntry(
            session=name,
            path=str(path),
            file=journal.fact("file") or "",
            digest=journal.fact("digest") or "",
            created=journal.fact("created") or path.stat().st_mtime,
            state=state,
            steps=_steps(journal),
            stopped_by=stopped_by,
        )
    except UsageError as error:
        modified = path.stat().st_mtime
        return SessionEntry(name, str(path), "", "", modified, "unreadable", 0, problem=str(error))
    finally:
        journal.close()


def find_session(folder: Path, name: str) -> Path:
    """The journal of a session by its name or an unambiguous beginning of it."""
    paths = {p.name.removesuffix(SUFFIX): p for p in folder.glob(f"*{SUFFIX}")}
    if name in paths:
        return paths[name]
    matches = sorted(stem for stem in paths if name and stem.startswith(name))
    if len(matches) == 1:
        return paths[matches[0]]
    if matches:
        raise UsageError(f"Several sessions begin with '{name}': {', '.join(matches[:4])}.")
    raise UsageError(f"There is no session '{name}'; `mtmc-tui sessions` lists them.")


def _steps(journal: Journal) -> int:
    with _readable_errors(journal.path):
        row = journal._connection.execute("select count(distinct step) from decisions").fetchone()
    return int(row[0])


def _connect(path: Path, vfs: str = "") -> sqlite3.Connection:
    where = f"file:{_quoted(path)}" + (f"?vfs={vfs}" if vfs else "")
    connection = sqlite3.connect(where, uri=True, timeout=5)
    connection.execute("pragma foreign_keys = 1")
    return connection


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _choose_mode(connection: sqlite3.Connection) -> None:
    """Write-ahead log where the file system can share memory, else a rollback journal."""
    try:
        mode = connection.execute("pragma journal_mode = wal").fetchone()[0]
    except sqlite3.OperationalError:
        mode = "refused"
    if mode != "wal":
        connection.execute("pragma journal_mode = truncate")
    connection.execute("pragma synchronous = full")


def _check_header(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("pragma application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise UsageError(f"{path} is not a journal of mtmc; choose a session that is listed.")
    version = connection.execute("pragma user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"The journal {path} has format {version}, this version reads {SCHEMA_VERSION}:"
            " use the version that wrote it, or start afresh without --resume."
        )


@contextlib.contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"The journal {path} cannot be read ({error}): move it away and start afresh."
        ) from error


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(SUFFIX) + ".lock")


def _take_lock(path: Path, patience_s: float = 3.0) -> int | None:
    """Hold the session for this process; None where the file system has no locks.

    A run that was just told to end still holds it for a moment, hence the patience.
    """
    descriptor = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                name = path.name.removesuffix(SUFFIX)
                raise UsageError(
                    f"Session {name} is still running: stop it before resuming it."
                ) from None
            time.sleep(0.05)
        except OSError:
            os.close(descriptor)
            return None
        else:
            return descriptor


def _drop_lock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _locked(path: Path) -> bool:
    try:
        descriptor = os.open(_lock_path(path), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False

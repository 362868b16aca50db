"""The journal: one SQLite file a session, from which a killed run goes on."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import (
    AnyEvent,
    CandidateReady,
    Decided,
    NodeAdded,
    SessionStarted,
    TaskOpened,
    VerdictReached,
    decode_event,
    encode,
)
from mtmc_engine.core.program import Program, Schedule
from mtmc_engine.core.verdict import Verdict
from mtmc_engine.session import locks

SCHEMA_VERSION = 1
SUFFIX = ".mtmc.db"
APPLICATION_ID = 0x4D544D43  # "MTMC" in SQLite's header: tells a journal from other databases

SCHEMA = f"""
begin;
create table facts (name text primary key, value text not null);
create table events (seq integer primary key, at real not null, kind text not null,
                     body text not null);
create table programs (tree integer not null, node text not null, parent text,
                       digest text not null, source text not null, schedule text not null,
                       primary key (tree, node));
create table verdicts (tree integer not null, node text not null, class text not null,
                       body text not null, primary key (tree, node));
create table decisions (seq integer primary key, tree integer not null, step integer not null,
                        node text not null, kind text not null, phrase text not null,
                        choice text not null, by text not null, reason text not null);
create table samples (tree integer not null, node text not null, contestant text not null,
                      time_us real not null, samples_us text not null);
pragma application_id = {APPLICATION_ID};
pragma user_version = {SCHEMA_VERSION};
commit;
"""


class Journal:
    """One session on disk. A writing call is durable when it returns; there is one writer.

    tree: which plan tree is written and read; each TaskOpened begins one, with nodes from n0.

    Opened by `create`, `reopen` and `read`. These and the reading calls raise UsageError for a
    file that is not a journal, is damaged or is of another version.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: int | None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
        self.tree = int(self.fact("tree") or 0)

    @classmethod
    def create(cls, folder: Path, task_name: str, vfs: str = "") -> Journal:
        """A new journal with a readable name, such as softmax-20261130-1742-ab12.

        vfs: SQLite's name of another way to reach the file system.
        """
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{task_name}-{time.strftime('%Y%m%d-%H%M')}-{secrets.token_hex(2)}"
        path = folder / f"{stem}{SUFFIX}"
        lock = locks.take(lock_path(path))
        with _explained(path):
            connection = _connect(path, "rwc", vfs)
            _choose_mode(connection)
            connection.executescript(SCHEMA)
        journal = cls(path, connection, lock)
        journal.set_fact("created", time.time())
        return journal

    @classmethod
    def reopen(cls, path: Path) -> Journal:
        """The journal of an earlier run, to write on. Refused while that run lives."""
        lock = locks.take(lock_path(path))
        try:
            with _explained(path):
                connection = _connect(path, "rw")
                _check_header(connection, path)
                _choose_mode(connection)
        except UsageError:
            locks.release(lock)
            raise
        return cls(path, connection, lock)

    @classmethod
    def read(cls, path: Path) -> Journal:
        """The journal as it stands, while its run may be writing."""
        with _explained(path):
            connection = _connect(path, "rw")
            _check_header(connection, path)
            connection.execute("pragma query_only = 1")
        return cls(path, connection, None)

    @property
    def session(self) -> str:
        """Name of the session: the file's name without its suffix."""
        return session_name(self.path)

    def close(self) -> None:
        """Release the file and its lock."""
        self._connection.close()
        locks.release(self._lock)
        self._lock = None

    def discard(self) -> None:
        """Delete the session: nothing worth keeping happened in it."""
        self._connection.close()
        for path in self.path.parent.glob(f"{self.path.name}*"):
            path.unlink()
        lock_path(self.path).unlink(missing_ok=True)
        locks.release(self._lock)
        self._lock = None

    def set_fact(self, name: str, value: Any) -> None:
        """Store one JSON value about the session, such as its task or its options."""
        with self._connection:
            self._set_fact(name, value)

    def write(
        self,
        *events: AnyEvent,
        program: Program | None = None,
        facts: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Store events, and what they mean for the tables, in one transaction.

        program: of the node that the events' CandidateReady or NodeAdded is about.
        facts: values about the session that become true with them.
        """
        with self._connection:
            for name, value in facts.items():
                self._set_fact(name, value)
            for event in events:
                self._write_event(event, program)

    def _write_event(self, event: AnyEvent, program: Program | None) -> None:
        self._connection.execute(
            "insert into events (at, kind, body) values (?, ?, ?)",
            (time.time(), str(event.__struct_config__.tag), encode(event).decode()),
        )
        match event:
            case TaskOpened():
                self.tree += 1
                self._set_fact("tree", self.tree)
            case CandidateReady() | NodeAdded() if program is not None:
                self._write_program(event.node, event.parent, program)
            case Decided():
                self._write_decision(event)
            case VerdictReached():
                self._write_verdict(event.node, event.verdict)
            case _:
                pass

    def _set_fact(self, name: str, value: Any) -> None:
        self._connection.execute(
            "insert into facts values (?, ?) on conflict do update set value = excluded.value",
            (name, _json(value)),
        )

    def _write_program(self, node: str, parent: str | None, program: Program) -> None:
        """A new source makes void what was found out about the former one."""
        self._connection.execute(
            "insert or replace into programs values (?, ?, ?, ?, ?, ?)",
            (self.tree, node, parent, program.digest, program.source, _json(program.schedule)),
        )
        for table in ("verdicts", "samples"):
            self._connection.execute(
                f"delete from {table} where tree = ? and node = ?", (self.tree, node)
            )

    def fact(self, name: str) -> Any:
        """A stored JSON value, or None."""
        row = self._one("select value from facts where name = ?", name)
        with _explained(self.path):
            return msgspec.json.decode(row[0]) if row else None

    def events(self) -> list[AnyEvent]:
        """All events, oldest first."""
        with _explained(self.path):
            rows = self._connection.execute("select body from events order by seq")
            return [decode_event(body) for (body,) in rows]

    def elapsed_s(self) -> float:
        """How long the session was at work: from the first to the last event of each run of it."""
        with _explained(self.path):
            rows = self._connection.execute("select at, kind from events order by seq").fetchall()
        total, last = 0.0, 0.0
        for at, kind in rows:
            if kind != SessionStarted.__struct_config__.tag:
                total += max(0.0, at - last)
            last = at
        return total

    def program(self, node: str) -> Program | None:
        """The stored program of a node, or None."""
        row = self._one(
            "select source, schedule from programs where tree = ? and node = ?", self.tree, node
        )
        with _explained(self.path):
            return Program(row[0], msgspec.json.decode(row[1], type=Schedule)) if row else None

    def verdict(self, node: str) -> Verdict | None:
        """The stored verdict of a node, or None."""
        row = self._one("select body from verdicts where tree = ? and node = ?", self.tree, node)
        with _explained(self.path):
            return msgspec.json.decode(row[0], type=Verdict) if row else None

    def decided_steps(self) -> int:
        """How many steps have a decision."""
        row = self._one(
            "select count(distinct step) from decisions where tree = ? and kind != 'stop'",
            self.tree,
        )
        return int(row[0]) if row else 0

    def _write_decision(self, event: Decided) -> None:
        self._connection.execute(
            "insert into decisions (tree, step, node, kind, phrase, choice, by, reason)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.tree,
                event.step,
                event.node,
                event.action.kind,
                event.action.phrase,
                event.choice,
                event.by,
                event.reason,
            ),
        )

    def _write_verdict(self, node: str, verdict: Verdict) -> None:
        self._connection.execute(
            "insert or replace into verdicts values (?, ?, ?, ?)",
            (self.tree, node, verdict.verdict.value, _json(verdict)),
        )
        if verdict.measurement is not None:
            self._connection.executemany(
                "insert into samples values (?, ?, ?, ?, ?)",
                [
                    (self.tree, node, one.name, one.time_us, _json(one.samples_us))
                    for one in verdict.measurement.contestants
                ],
            )

    def _one(self, query: str, *values: str | int) -> Any:
        with _explained(self.path):
            return self._connection.execute(query, values).fetchone()


def session_name(path: Path) -> str:
    """Name of the session that a journal file holds."""
    return path.name.removesuffix(SUFFIX)


def lock_path(path: Path) -> Path:
    """The lock file beside a journal."""
    return path.with_name(session_name(path) + ".lock")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _connect(path: Path, mode: str, vfs: str = "") -> sqlite3.Connection:
    quoted = str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    other = f"&vfs={vfs}" if vfs else ""
    return sqlite3.connect(f"file:{quoted}?mode={mode}{other}", uri=True, timeout=5)


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
        raise UsageError(f"{path} is not a journal of mtmc; `mtmc-tui sessions` lists them.")
    version = connection.execute("pragma user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"The journal {path} has format {version} and this version reads {SCHEMA_VERSION}:"
            " use the version that wrote it, or start afresh without --resume."
        )


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The journal {path} cannot be read ({error}): move it away and start afresh."
        ) from error

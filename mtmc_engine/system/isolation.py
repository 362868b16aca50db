"""What shuts candidates in on this machine: each protection attacked by a real child."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from pathlib import Path

from mtmc_engine.system.checks import Check, check_of, probe, sentence_of
from mtmc_engine.system.jobs import Confinement, Ending, JobResult, Limits, WarmParent

_HINT = "Allow user namespaces (sysctl user.max_user_namespaces), or run as root outside of"


async def isolation_checks(parent: WarmParent) -> list[Check]:
    """One check for each protection, found by what a confined child could reach."""
    with (
        tempfile.TemporaryDirectory(prefix="mtmc-doctor-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        secret = Path(folder) / "secret"
        secret.write_text("seen")
        arguments: dict[str, object] = {
            "engine": os.getpid(),
            "port": server.getsockname()[1],
            "folder": folder,
            "secret": str(secret),
        }
        confinement = Confinement(hidden=(str(secret),))
        few = Limits(wall_s=20, processes=16)
        reached, where, memory, forks = await asyncio.gather(
            probe(parent, "reach", arguments, confinement=confinement),
            probe(parent, "folder", {}),
            probe(parent, "wait", {}, Limits(wall_s=20, memory_mb=1)),
            probe(parent, "fork", {}, few, confinement),
        )
    return [*_reached(reached), *_bounds(where, memory, forks)]


def _reached(result: JobResult) -> list[Check]:
    """Of a child that tried to leave its confinement."""
    checks = []
    for name, (good, bad, advice) in {
        "network": (
            "candidates have no network",
            "candidates share the network",
            f"{_HINT} a container, to cut candidates off.",
        ),
        "processes": (
            "candidates see and signal no process but their own",
            "candidates can signal your processes",
            f"{_HINT} a container, to give candidates process numbers of their own.",
        ),
        "environment": (
            "the environment of your processes is closed to candidates",
            "candidates can read the environment of your processes",
            f"{_HINT} a container; until then start mtmc-tui without keys in its environment.",
        ),
        "disk": (
            "candidates can write to their own folder only",
            "candidates can write wherever you can",
            "Judge code of strangers in a container or on a machine of its own.",
        ),
        "secrets": (
            "keys, configuration and journals are hidden from candidates",
            "candidates see your files as you do",
            "Judge code of strangers in a container or on a machine of its own.",
        ),
    }.items():
        tried = result.ending is Ending.DONE
        held = tried and name not in result.value
        found = good if held else bad if tried else sentence_of(result)
        checks.append(check_of(f"isolation: {name}", held, found, advice))
    return checks


def _bounds(where: JobResult, memory: JobResult, forks: JobResult) -> list[Check]:
    private = where.ending is Ending.DONE and not Path(where.value).exists()
    proc = "Mount /proc: it is read there."
    return [
        check_of(
            "isolation: folder",
            private,
            "each candidate has its own temporary folder, removed at its end"
            if private
            else sentence_of(where),
            "Make TMPDIR writable.",
            required=True,
        ),
        _bound("memory", "memory is bounded", memory, Ending.MEMORY, proc),
        _bound("fork bombs", "the number of processes is bounded", forks, Ending.PROCESSES, proc),
    ]


def _bound(name: str, good: str, result: JobResult, ending: Ending, advice: str) -> Check:
    ok = result.ending is ending
    return check_of(f"isolation: {name}", ok, good if ok else sentence_of(result), advice)

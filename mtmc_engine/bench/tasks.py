"""The tasks of a bench: files that hold a reference, by name and family."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mtmc_engine.core.errors import UsageError

# What the names of our own suite begin with; other files belong to their folder.
FAMILIES = ("pointwise", "reduce", "norm", "scan", "matmul", "chain", "net")
_MARKS = ("def get_inputs", "def inputs")


@dataclass(frozen=True)
class BenchTask:
    """One file. name: "suite/matmul_square"; digest: SHA-256 of its text."""

    name: str
    family: str
    file: Path
    digest: str


def find_tasks(paths: Iterable[str]) -> tuple[BenchTask, ...]:
    """All tasks of folders and files, each once, in the order of their names.

    Of a folder, files that define inputs. Raises UsageError for a path that is not there, and
    where there is nothing at all.
    """
    files: dict[Path, None] = {}
    for path in paths:
        files.update(dict.fromkeys(_files(path)))
    if not files:
        raise UsageError(
            f"There is no task in {', '.join(paths)}: a task is a Python file with get_inputs()."
        )
    return tuple(map(_task, files))


def _files(given: str) -> list[Path]:
    if not given.strip():
        raise UsageError("The name of a folder of tasks is empty; name one, such as samples/suite.")
    path = Path(given).expanduser().absolute()
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"There is no file or folder {given}; check the path.")
    found = sorted(path.rglob("*.py"))
    return [file for file in found if not _is_hidden(file, path) and _has_inputs(file)]


def _is_hidden(file: Path, root: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(root).parts)


def _has_inputs(file: Path) -> bool:
    text = file.read_text(encoding="utf-8", errors="replace")
    return any(mark in text for mark in _MARKS)


def _task(file: Path) -> BenchTask:
    prefix = file.stem.partition("_")[0]
    family = prefix if prefix in FAMILIES else file.parent.name
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return BenchTask(f"{file.parent.name}/{file.stem}", family, file, digest)

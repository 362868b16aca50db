"""Configuration: a TOML file, the nearest one wins.

`mtmc.toml` in the current folder, else the one in the user's configuration folder. Options of the
command line override it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.options import MOST_SAMPLES, MOST_STEPS, MOST_WHOLE
from mtmc_engine.system.job_result import Limits
from mtmc_engine.system.paths import config_folder
from mtmc_engine.system.suggest import nearest

FILE_NAME = "mtmc.toml"

# A bound so that every number can be counted with: 10^9 MB, or 30 years.
_Count = Annotated[int, Meta(ge=1, le=10**9)]
_Amount = Annotated[float, Meta(gt=0, le=1e9)]


class StageLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """Table [limits]: bounds of the child processes, by stage in seconds, then of each.

    capture_s: opening the user's file. compile_s: import and compilation of a candidate.
    reference_s: the reference over all cases. values_s: the candidate over all cases.
    timing_s: all timing of one candidate. The others are as in Limits.
    """

    capture_s: _Amount = 180.0
    compile_s: _Amount = 180.0
    reference_s: _Amount = 120.0
    values_s: _Amount = 120.0
    timing_s: _Amount = 300.0
    memory_mb: _Count = Limits.memory_mb
    output_kb: _Count = Limits.output_kb
    processes: Annotated[int, Meta(ge=8, le=10**6)] = Limits.processes
    disk_mb: _Count = Limits.disk_mb

    def of(self, wall_s: float) -> Limits:
        """The limits of a child that may take `wall_s` seconds."""
        return Limits(wall_s, self.memory_mb, self.output_kb, self.processes, self.disk_mb)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings, with their defaults.

    planner, coder, target: as the options of the same names.
    steps: most steps of a plan. mix: weight of the language model against the roofline planner,
    0 to 1. normalise: by what a phrase's log probability is divided.
    confine: whether code under judgement is shut in as far as this machine can.
    samples: candidates that a language model is asked for at once. repairs: rounds in which a
    failed candidate goes back to it by itself. read_prompts: show each prompt before it is sent.
    budget_tokens, budget_usd, budget_seconds: what language models may use in a session; seconds
    are those of waiting for them.
    """

    planner: str = "auto"
    coder: str = "builtin"
    target: str = "auto"
    steps: Annotated[int, Meta(ge=1, le=MOST_STEPS)] = 8
    mix: Annotated[float, Meta(ge=0, le=1)] = 0.2
    normalise: Literal["word", "token", "none"] = "word"
    confine: bool = True
    samples: Annotated[int, Meta(ge=1, le=MOST_SAMPLES)] = 1
    repairs: Annotated[int, Meta(ge=0, le=100)] = 3
    read_prompts: bool = False
    budget_tokens: Annotated[int, Meta(ge=1, le=MOST_WHOLE)] | None = None
    budget_usd: _Amount | None = None
    budget_seconds: _Amount | None = None
    limits: StageLimits = StageLimits()


def config_file() -> Path | None:
    """The file whose settings hold in the current folder."""
    for path in (Path.cwd() / FILE_NAME, config_folder() / FILE_NAME):
        if path.is_file():
            return path
    return None


def load_config(path: Path | None = None) -> Config:
    """Settings from `path`, by default the nearest file; defaults where there is none.

    Raises UsageError for a file that is not TOML, an unknown key (the nearest known one is
    named) or a value of a wrong type.
    """
    path = path or config_file()
    if path is None:
        return Config()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from error
    _refuse_unknown(path, table, Config, "")
    _refuse_unknown(path, table.get("limits"), StageLimits, "limits.")
    try:
        return msgspec.convert(table, Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {_readable(str(error))}.") from error


def _refuse_unknown(path: Path, table: Any, known: type[Struct], prefix: str) -> None:
    names = known.__struct_fields__
    for key in table if isinstance(table, dict) else ():
        if key not in names:
            guess = prefix + nearest(key, names)
            raise UsageError(f'{path}: unknown key "{prefix}{key}"; did you mean "{guess}"?')


def _readable(message: str) -> str:
    """A msgspec message with the key where its path was: "steps: expected `int`, got `str`"."""
    what, _, where = message.partition(" - at `$.")
    return f"{where.rstrip('`')}: {what[0].lower()}{what[1:]}" if where else message

"""The engine's commands: `python -m mtmc_engine run|check|doctor|sessions|export|models|bench …`.

`run` speaks the protocol of core.events, `bench` prints a table; the others print one JSON
document. An error is one sentence on standard error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from mtmc_engine.core.errors import MtmcError, UsageError
from mtmc_engine.core.options import RunOptions, decode_options
from mtmc_engine.export.write import check_folder, export_best
from mtmc_engine.session import trouble
from mtmc_engine.session.main import serve
from mtmc_engine.session.seams import Exporter

EXPORTER = Exporter(check_folder, export_best)


def main(arguments: Sequence[str]) -> int:
    """Run one command: its exit code."""
    commands: dict[str, Callable[[Sequence[str]], int]] = {
        "run": _run,
        "check": _check,
        "doctor": _doctor,
        "sessions": _sessions,
        "export": _export,
        "models": _models,
        "bench": _bench,
    }
    name, *rest = arguments or [""]
    try:
        if name not in commands:
            raise UsageError(f"'{name}' is no command of the engine: {', '.join(commands)} are.")
        return commands[name](rest)
    except MtmcError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # the boundary: one sentence, and the traceback in a file
        return _say(trouble.sentence(error, trouble.record(error)), 1)


def _run(arguments: Sequence[str]) -> int:
    file, *rest = _at_least(arguments, 1, "run FILE [OPTIONS]")
    options = RunOptions(file)
    if rest:
        try:
            options = decode_options(rest[0])
        except msgspec.MsgspecError as error:
            raise UsageError(f"The options of the run cannot be read: {error}.") from error
    return asyncio.run(serve(msgspec.structs.replace(options, file=file), EXPORTER))


def _check(arguments: Sequence[str]) -> int:
    from mtmc_engine.session import documents

    file, candidate, *rest = _at_least(arguments, 2, "check FILE CANDIDATE [OPTIONS]")
    options = msgspec.json.decode(rest[0] if rest else "{}", type=documents.CheckOptions)
    report = asyncio.run(documents.check(file, candidate, options))
    _print(report)
    return _say(report.error, report.exit_code) if report.error else report.exit_code


def _doctor(arguments: Sequence[str]) -> int:
    from mtmc_engine.session import documents

    report = asyncio.run(documents.doctor())
    _print(report)
    return 0 if report.ok else 1


def _sessions(arguments: Sequence[str]) -> int:
    from mtmc_engine.session import documents

    _print(documents.sessions())
    return 0


def _export(arguments: Sequence[str]) -> int:
    from mtmc_engine.session import documents

    session, folder, *_ = _at_least(arguments, 2, "export SESSION DIR")
    _print(documents.export(session, Path(folder).expanduser().absolute(), EXPORTER))
    return 0


def _models(arguments: Sequence[str]) -> int:
    from mtmc_engine.session import documents

    _print(documents.models())
    return 0


def _bench(arguments: Sequence[str]) -> int:
    from mtmc_engine.bench.command import bench
    from mtmc_engine.bench.options import BenchOptions

    (given,) = _at_least(arguments, 1, "bench OPTIONS")[:1]
    try:
        options = msgspec.json.decode(given, type=BenchOptions)
    except msgspec.MsgspecError as error:
        raise UsageError(f"The options of the bench cannot be used: {error}.") from error
    return bench(options, EXPORTER)


def _at_least(arguments: Sequence[str], count: int, form: str) -> list[str]:
    if len(arguments) < count:
        raise UsageError(f"The engine wants: {form}.")
    return list(arguments)


def _print(document: object) -> None:
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document)) + b"\n")
    sys.stdout.buffer.flush()


def _say(sentence: str, code: int) -> int:
    print(sentence, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

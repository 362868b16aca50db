"""The command line: `mtmc-tui FILE`, and the subcommands that need no screen."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import msgspec
from cyclopts import App, CycloptsError, Parameter

from mtmc_engine.core.errors import MtmcError, UsageError
from mtmc_engine.core.options import RunOptions

DISPLAYS = ("tui", "plain", "json")
Help = Parameter

app = App(
    name="mtmc-tui",
    help="Make GPU kernels fast, one proven step at a time.",
    usage="mtmc-tui FILE [options], or mtmc-tui COMMAND",
    version=lambda: _version(),  # noqa: PLW0108
    default_parameter=Parameter(negative=(), show_default=False),
    help_format="plaintext",
)


@app.default
def optimise(
    file: Annotated[str, Help(help="Python file with the operator (see samples/).")],
    /,
    *,
    display: Annotated[str | None, Help(help="tui, plain or json.")] = None,
    json: Annotated[bool, Help(help="The same as --display json.")] = False,
    yes: Annotated[bool, Help(help="Ask nobody: proven faster steps are kept.")] = False,
    steps: Annotated[int | None, Help(help="Most steps to try.")] = None,
    until: Annotated[str | None, Help(help="Stop at this ratio, such as 1.5x.")] = None,
    planner: Annotated[str, Help(help="auto, llama, llama:FILE.gguf, roofline or uniform.")] = "",
    coder: Annotated[str, Help(help="builtin.")] = "",
    target: Annotated[str, Help(help="auto, sm_80, sm_90, ...")] = "",
    export: Annotated[str | None, Help(help="Folder for the answer.")] = None,
    seed: Annotated[int, Help(help="Seed of inputs and parameters.")] = 0,
    resume: Annotated[bool, Help(help="Go on with the last unfinished session.")] = False,
    theme: Annotated[str | None, Help(help="Colours of the screen.")] = None,
) -> int:
    """Open an operator and make it fast.

    With --yes nobody is asked. Without it and with nobody to answer the exit code is 3.
    """
    options = RunOptions(
        file=file,
        yes=yes,
        steps=_checked_steps(steps),
        until=ratio_of(until),
        planner=planner,
        coder=coder,
        target=target,
        export=export,
        seed=seed,
        resume=resume,
    )
    chosen = _display(display, json)
    if chosen == "json":
        from mtmc_tui.displays.json import run_json

        return run_json(options)
    if chosen == "plain":
        from mtmc_tui.displays.plain import run_plain

        return run_plain(options)
    return _screen(options, theme)


@app.command
def check(
    file: Annotated[str, Help(help="File with the reference.")],
    candidate: Annotated[str, Help(help="File with the kernel to judge.")],
    /,
    *,
    json: Annotated[bool, Help(help="Print one JSON document.")] = False,
    require_faster: Annotated[bool, Help(help="Accept only what is proven faster.")] = False,
    target: Annotated[str, Help(help="auto, sm_80, sm_90, ...")] = "",
    seed: Annotated[int, Help(help="Seed of inputs and parameters.")] = 0,
) -> int:
    """Judge a kernel against a reference: exit 0 accepted, 1 rejected, 2 could not judge."""
    options = {"require_faster": require_faster, "target": target, "seed": seed}
    return _document(["check", file, candidate, _json(options)], json)


@app.command
def doctor(*, json: Annotated[bool, Help(help="Print one JSON document.")] = False) -> int:
    """Say what is here, and what to do about what is missing."""
    return _document(["doctor"], json)


@app.command
def sessions(*, json: Annotated[bool, Help(help="Print one JSON document.")] = False) -> int:
    """List the sessions on this machine, newest first."""
    return _document(["sessions"], json)


@app.command
def models(*, json: Annotated[bool, Help(help="Print one JSON document.")] = False) -> int:
    """List the planner's models on this machine."""
    return _document(["models"], json)


@app.command(name="export")
def export_session(
    session: Annotated[str, Help(help="Name of a session, or its beginning.")],
    folder: Annotated[str, Help(help="Folder for the answer.")],
    /,
    *,
    json: Annotated[bool, Help(help="Print one JSON document.")] = False,
) -> int:
    """Write the best proven kernel of a session into a folder."""
    return _document(["export", session, folder], json)


@app.command
def bench(
    *paths: Annotated[str, Help(help="Folders of tasks, or files.")],
    budget: Annotated[float | None, Help(help="Stop after so many seconds.")] = None,
    jobs: Annotated[int | None, Help(help="Children that compile at once.")] = None,
    json: Annotated[str, Help(help="File of results, one JSON line a task.")] = "",
    resume: Annotated[bool, Help(help="Leave out tasks that have a line there.")] = False,
    protocol: Annotated[str, Help(help="strict or plain.")] = "strict",
    precision: Annotated[str, Help(help="match or tf32, for all contestants alike.")] = "match",
    target: Annotated[str, Help(help="auto, sm_80, sm_90, ...")] = "",
    seed: Annotated[int, Help(help="Seed of inputs and parameters.")] = 0,
) -> int:
    """Walk folders of tasks and compare with eager PyTorch and torch.compile."""
    from mtmc_tui.client import engine_command, engine_environment

    if not paths:
        raise UsageError("Give a folder of tasks, such as samples/suite.")
    _one_of("--protocol", protocol, ("strict", "plain"))
    _one_of("--precision", precision, ("match", "tf32"))
    _above_zero("--budget", budget)
    _above_zero("--jobs", jobs)
    options = {
        "paths": paths,
        "budget_s": budget,
        "jobs": jobs,
        "json": json,
        "resume": resume,
        "protocol": protocol,
        "precision": precision,
        "target": target,
        "seed": seed,
    }
    sys.stdout.flush()
    command = engine_command(["bench", _json(options)])
    os.execve(command[0], command, engine_environment())  # it has the terminal's signals then


def main() -> None:
    """Entry point. Exits with the command's code; an error is one sentence."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line: its exit code."""
    try:
        result = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        return _say(f"{_sentence(error)} See mtmc-tui --help.", 2)
    except MtmcError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    return result if isinstance(result, int) else 0


def ratio_of(text: str | None) -> float | None:
    """1.5 of "1.5" or "1.5x". Raises UsageError for anything else."""
    if text is None:
        return None
    matched = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)[x×]?", text.strip())
    if matched is None or float(matched[1]) <= 0:
        raise UsageError(f"--until '{text}' is not a ratio: write it as 1.5 or 1.5x.")
    return float(matched[1])


def _screen(options: RunOptions, theme: str | None) -> int:
    from mtmc_tui.screen import themes
    from mtmc_tui.screen.settings import load_settings

    if theme:
        themes.check_name(theme, load_settings(theme).themes_folder)
    if not _on_terminal():
        raise UsageError("The screen needs a terminal: use --display plain or --display json.")
    from mtmc_tui.screen.app import run_screen

    return run_screen(options, theme=theme)


def _on_terminal() -> bool:
    """Whether the screen can be shown: keys come from standard input, it is drawn on the others."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _checked_steps(steps: int | None) -> int | None:
    if steps is not None and steps < 1:
        raise UsageError(f"--steps {steps} leaves nothing to do: give 1 or more.")
    return steps


def _one_of(option: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise UsageError(f"{option} '{given}' is unknown: choose {' or '.join(known)}.")


def _above_zero(option: str, given: float | None) -> None:
    if given is not None and given <= 0:
        raise UsageError(f"{option} {given:g} leaves nothing to do: give more than 0.")


def _display(name: str | None, json: bool) -> str:
    if json and name not in (None, "json"):
        raise UsageError(f"--json and --display {name} exclude each other: leave one of them out.")
    if json:
        return "json"
    if name is None:
        return "tui" if _on_terminal() and os.environ.get("TERM") != "dumb" else "plain"
    if name not in DISPLAYS:
        raise UsageError(f"There is no display '{name}'{_nearest(name)}.")
    return name


def _nearest(name: str) -> str:
    near = get_close_matches(name, DISPLAYS, n=1, cutoff=0.4)
    return f"; did you mean {near[0]}" if near else f": choose one of {', '.join(DISPLAYS)}"


def _document(arguments: list[str], as_json: bool) -> int:
    from mtmc_tui.client import run_document

    code, document = asyncio.run(run_document(arguments))
    if as_json:
        sys.stdout.buffer.write(document)
        return code
    if document:
        from mtmc_tui.documents import text_of

        if text := text_of(arguments[0], msgspec.json.decode(document)):
            print(text)
    return code


def _sentence(error: CycloptsError) -> str:
    if not sys.argv[1:]:
        return "Give the file with the operator to optimise: mtmc-tui FILE."
    return " ".join(str(error).split())


def _say(sentence: str, code: int) -> int:
    print(sentence, file=sys.stderr)
    return code


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _version() -> str:
    try:
        return version("mtmc-tui")
    except PackageNotFoundError:
        return "from a source tree"


if __name__ == "__main__":
    main()

"""The command line: `mtmc-tui FILE`, and the subcommands that need no screen."""

from __future__ import annotations

import asyncio
import os
import sys
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import msgspec
from cyclopts import App, CycloptsError, Parameter

from mtmc_engine.core.errors import MtmcError, UsageError
from mtmc_engine.core.options import MOST_JOBS, MOST_SAMPLES, MOST_STEPS, MOST_WHOLE, RunOptions
from mtmc_tui.values import above_zero, integer, ratio_of, utf8, whole, word

DISPLAYS = ("tui", "plain", "json")
Help = Parameter
# The library's own reading takes 1.5 for 1.
INTEGER = Parameter(converter=lambda _, tokens: integer(tokens[0].keyword, tokens[0].value))

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
    steps: Annotated[int | None, INTEGER, Help(help="Most steps to try.")] = None,
    until: Annotated[str | None, Help(help="Stop at this ratio, such as 1.5x.")] = None,
    planner: Annotated[
        str | None,
        Help(help="auto, llama, llama:FILE.gguf, openai:MODEL[@URL], roofline or uniform."),
    ] = None,
    coder: Annotated[
        str | None,
        Help(
            help="builtin, openai:MODEL[@URL], llama:FILE.gguf; with commas, each where those"
            " before cannot."
        ),
    ] = None,
    samples: Annotated[
        int | None, INTEGER, Help(help="Candidates a model is asked for at once.")
    ] = None,
    budget_tokens: Annotated[
        int | None, INTEGER, Help(help="Most tokens of language models.")
    ] = None,
    budget_usd: Annotated[float | None, Help(help="Most US dollars for them.")] = None,
    budget_seconds: Annotated[float | None, Help(help="Most seconds of waiting for them.")] = None,
    read_prompts: Annotated[bool, Help(help="Read each prompt before it is sent.")] = False,
    timings: Annotated[str, Help(show=False)] = "",
    target: Annotated[str | None, Help(help="auto, sm_80, sm_90, ...")] = None,
    reference: Annotated[
        str | None, Help(help="What it should compute: NAME, or FILE:NAME of another file.")
    ] = None,
    export: Annotated[str | None, Help(help="Folder for the answer.")] = None,
    seed: Annotated[int, INTEGER, Help(help="Seed of inputs and parameters.")] = 0,
    resume: Annotated[bool, Help(help="Go on with the last unfinished session.")] = False,
    theme: Annotated[str | None, Help(help="Colours of the screen.")] = None,
) -> int:
    """Open an operator and make it fast.

    With --yes nobody is asked. Without it and with nobody to answer the exit code is 3. Under
    --yes a coder that cannot be asked ends the run with exit code 1; a spent budget with 0.
    """
    if yes and read_prompts:
        raise UsageError("--read-prompts waits for a reader and --yes has none: leave one out.")
    options = RunOptions(
        file=file,
        yes=yes,
        steps=whole("--steps", steps, 1, MOST_STEPS),
        until=ratio_of(until),
        planner=word("--planner", planner) or "",
        coder=word("--coder", coder) or "",
        target=word("--target", target) or "",
        export=word("--export", export),
        seed=whole("--seed", seed, 0, MOST_WHOLE) or 0,
        resume=resume,
        samples=whole("--samples", samples, 1, MOST_SAMPLES),
        budget_tokens=whole("--budget-tokens", budget_tokens, 1, MOST_WHOLE),
        budget_usd=above_zero("--budget-usd", budget_usd),
        budget_seconds=above_zero("--budget-seconds", budget_seconds),
        read_prompts=read_prompts,
        timings=timings,
        reference=word("--reference", reference) or "",
    )
    if theme is not None:
        _check_theme(theme)
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
    reference: Annotated[
        str | None, Help(help="What it should compute: NAME, or FILE:NAME of another file.")
    ] = None,
    target: Annotated[str | None, Help(help="auto, sm_80, sm_90, ...")] = None,
    seed: Annotated[int, INTEGER, Help(help="Seed of inputs and parameters.")] = 0,
) -> int:
    """Judge a kernel against a reference: exit 0 accepted, 1 rejected, 2 could not judge."""
    options = {
        "require_faster": require_faster,
        "target": word("--target", target) or "",
        "seed": whole("--seed", seed, 0, MOST_WHOLE),
        "reference": word("--reference", reference) or "",
    }
    return _document(["check", file, candidate, _json(options)], json, _OF_CHECK)


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
    jobs: Annotated[int | None, INTEGER, Help(help="Children that compile at once.")] = None,
    json: Annotated[str, Help(help="File of results, one JSON line a task.")] = "",
    resume: Annotated[bool, Help(help="Leave out tasks that have a line there.")] = False,
    protocol: Annotated[str, Help(help="strict or plain.")] = "strict",
    precision: Annotated[str, Help(help="match or tf32, for all contestants alike.")] = "match",
    target: Annotated[str | None, Help(help="auto, sm_80, sm_90, ...")] = None,
    seed: Annotated[int, INTEGER, Help(help="Seed of inputs and parameters.")] = 0,
) -> int:
    """Walk folders of tasks and compare with eager PyTorch and torch.compile."""
    from mtmc_tui.client import engine_command, engine_environment

    if not paths:
        raise UsageError("Give a folder of tasks, such as samples/suite.")
    _one_of("--protocol", protocol, ("strict", "plain"))
    _one_of("--precision", precision, ("match", "tf32"))
    above_zero("--budget", budget)
    whole("--jobs", jobs, 1, MOST_JOBS)
    options = {
        "paths": paths,
        "budget_s": budget,
        "jobs": jobs,
        "json": json,
        "resume": resume,
        "protocol": protocol,
        "precision": precision,
        "target": word("--target", target) or "",
        "seed": whole("--seed", seed, 0, MOST_WHOLE),
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
        utf8(arguments)
        result = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        return _say(f"{_sentence(error, arguments)} See mtmc-tui --help.", 2)
    except MtmcError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    return result if isinstance(result, int) else 0


def _check_theme(name: str) -> None:
    """Before any display is chosen: a wrong name is a mistake under each of them."""
    from mtmc_tui.screen import themes
    from mtmc_tui.screen.settings import load_settings

    word("--theme", name)
    themes.check_name(name, load_settings(name).themes_folder)


def _screen(options: RunOptions, theme: str | None) -> int:
    if not _on_terminal():
        raise UsageError("The screen needs a terminal: use --display plain or --display json.")
    from mtmc_tui.screen.app import run_screen

    return run_screen(options, theme=theme)


def _on_terminal() -> bool:
    """Whether the screen can be shown: keys come from standard input, it is drawn on the others."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _one_of(option: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise UsageError(f"{option} '{given}' is unknown: choose {' or '.join(known)}.")


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


# What `check --json` prints: a judgement, whoever asked for it.
_OF_CHECK = ("verdict", "accepted", "reason", "evidence", "gates", "warnings", "measurement")


def _document(arguments: list[str], as_json: bool, keys: tuple[str, ...] = ()) -> int:
    """keys: those of the engine's document that are printed; all where there are none."""
    from mtmc_tui.client import run_document

    code, document = asyncio.run(run_document(arguments))
    if as_json:
        if keys and document:
            whole = msgspec.json.decode(document)
            chosen = msgspec.json.encode({key: whole[key] for key in keys})
            document = msgspec.json.format(chosen, indent=2) + b"\n"
        sys.stdout.buffer.write(document)
        return code
    if document:
        from mtmc_tui.documents import text_of

        if text := text_of(arguments[0], msgspec.json.decode(document)):
            print(text)
    return code


def _sentence(error: CycloptsError, arguments: list[str]) -> str:
    if not arguments:
        return "Give the file with the operator to optimise: mtmc-tui FILE."
    first, commands = arguments[0], [name for name in app if name[0] != "-"]
    meant = get_close_matches(first, commands, n=1)
    if meant and first not in commands and "." not in first and not os.path.exists(first):
        return f"There is no command {first}; did you mean {meant[0]}?"
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

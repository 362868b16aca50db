"""From how a child ended to a verdict class and one plain sentence."""

from __future__ import annotations

import signal

from mtmc_engine.core.verdict import Class
from mtmc_engine.proof.wire import Trouble
from mtmc_engine.system.jobs import Ending, JobResult

_MEMORY_SIGNALS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT}
_BY_TYPE = {
    "OutOfMemoryError": Class.OOM,
    "MemoryError": Class.OOM,
    "OutOfResources": Class.RESOURCES,
    "GridTooLarge": Class.LAUNCH,
    "CompilationError": Class.COMPILE,
    "CompileTimeAssertionFailure": Class.COMPILE,
    "UnsupportedLanguageConstruct": Class.COMPILE,
    "PTXASError": Class.COMPILE,
}
_BY_WORDS = (
    ("out of memory", Class.OOM),
    ("illegal memory access", Class.ILLEGAL_ACCESS),
    ("misaligned address", Class.ILLEGAL_ACCESS),
    ("unspecified launch failure", Class.ILLEGAL_ACCESS),
    ("out of resource", Class.RESOURCES),
    ("invalid argument", Class.LAUNCH),
    ("invalid configuration", Class.LAUNCH),
    ("device-side assert", Class.RUNTIME),
)


def ending(result: JobResult, doing: str) -> tuple[Class, str]:
    """Verdict for a candidate's child that ended without an answer, while `doing`."""
    passed = {
        Ending.TIMEOUT: (Class.TIMEOUT, f"it did not finish within {result.seconds:.0f} s"),
        Ending.MEMORY: (Class.OOM, "it used more memory than it may"),
        Ending.PROCESSES: (Class.RUNTIME, "it started more processes than it may"),
        Ending.DISK: (Class.RUNTIME, "it filled more of the disk than it may"),
        Ending.EXITED: (Class.RUNTIME, "it ended its own process"),
    }
    if result.ending in passed:
        verdict, what = passed[result.ending]
        return verdict, f"{what} while {doing}"
    if result.ending is Ending.SIGNAL:
        name = signal.Signals(result.signal).name if result.signal < 32 else str(result.signal)
        if result.signal in _MEMORY_SIGNALS:
            return (
                Class.ILLEGAL_ACCESS,
                f"it crashed with {name} while {doing}: most likely an access outside its memory",
            )
        return Class.RUNTIME, f"its process was ended by {name} while {doing}"
    return Class.RUNTIME, f"{result.error} while {doing}"


def exception(found: Trouble) -> tuple[Class, str]:
    """Verdict for an exception that the candidate raised."""
    place = f"line {found.line}: " if found.line else ""
    message = found.message.splitlines()[-1] if found.message else ""
    if found.stage == "import":
        verdict = Class.SYNTAX if found.type == "SyntaxError" else Class.IMPORT
        return verdict, f"{place}importing it fails with {_said(found.type, message)}"
    if found.stage == "find":
        return Class.IMPORT, found.message
    if found.stage == "compile":
        return _compile(found, place)
    verdict = _class_of(found) or (Class.LAUNCH if _in_launch(found) else Class.RUNTIME)
    doing = "building it" if found.stage == "build" else "calling it"
    return verdict, f"{place}{doing} fails with {_said(found.type, message)}"


def _compile(found: Trouble, place: str) -> tuple[Class, str]:
    verdict = _BY_TYPE.get(found.type, Class.COMPILE)
    if verdict is Class.COMPILE and found.type in ("TypeError", "KeyError", "ValueError"):
        verdict = Class.LAUNCH
    if verdict in (Class.RESOURCES, Class.LAUNCH):
        return verdict, f"{place}{found.message.splitlines()[-1] if found.message else found.type}"
    first = next((line for line in found.message.splitlines()[::-1] if line.strip()), found.type)
    return verdict, f"{place}the compiler refuses it: {first.strip()}"


def _class_of(found: Trouble) -> Class | None:
    if found.type in _BY_TYPE:
        return _BY_TYPE[found.type]
    text = found.message.lower()
    return next((verdict for words, verdict in _BY_WORDS if words in text), None)


def _in_launch(found: Trouble) -> bool:
    """Whether Triton's runtime was at work, not the candidate's own Python."""
    return "InterpreterError" in found.log or "triton/runtime" in found.log


def _said(kind: str, message: str) -> str:
    return f"{kind}: {message}" if message else kind

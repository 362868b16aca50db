"""From a model's reply to code, or to the reason why there is none. Pure."""

from __future__ import annotations

import ast
import builtins
import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from mtmc_engine.coder.llm.blocks import NoMatch, applied, blocks_in, has_blocks
from mtmc_engine.coder.llm.fences import Fence, fences_in

# Imports that a reply may have forgotten, by the name that they bind.
IMPORTS: Mapping[str, str] = {
    "math": "import math",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "nn": "from torch import nn",
    "libdevice": "from triton.language.extra import libdevice",
}
_LANGUAGE_LINE = re.compile(r"\A\s*(?:python3?|py|triton)[ \t]*\n", re.IGNORECASE)
_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*?</(?:think|thinking|thought|reasoning)>\s*", re.DOTALL | re.I)
_THOUGHT_OPEN = re.compile(
    r"^\s*<(?:think|thinking|thought|reasoning)>.*\Z", re.DOTALL | re.I | re.M
)
_CODE_BEGINS = re.compile(r'^(?:import |from \w|"""|\'\'\'|@triton|def |class |#)')

# Lines at which code without a fence is taken to begin, tried in turn.
_MOST_STARTS = 8
# How often prose is cut off at its first line.
_MOST_ENDS = 4
_NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)

Failing = Literal["empty", "thinking", "length", "filtered", "unusable"]


@dataclass(frozen=True)
class Code:
    """A source that parses and defines the entry. notes: what had to be put right, in words."""

    source: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoCode:
    """Why a reply holds no program.

    kind:   "thinking" and "length" may end otherwise with a larger cap on the reply, "empty" and
            "filtered" by asking again; "unusable" needs another answer.
    reason: one sentence, for the user and for the model.
    """

    kind: Failing
    reason: str


def read_reply(
    text: str,
    finish: str,
    before: str | None,
    *,
    thinking: str = "",
    entry: str = "ModelNew",
    imports: Mapping[str, str] = IMPORTS,
) -> Code | NoCode:
    """The program that a reply holds.

    before: the program that SEARCH/REPLACE blocks apply to, None where there is none.
    thinking: what the transport already told apart. entry: the class or function that must be
    defined. imports: what may be added, by the name that it binds.
    """
    answer, thought = _without_thoughts(text.replace("\r\n", "\n").replace("\r", "\n"))
    if finish == "content_filter":
        return NoCode("filtered", "The server's content filter held the answer back.")
    if not answer.strip():
        return _nothing(finish, bool(thinking.strip() or thought))
    try:
        source, notes = _source_in(answer, finish, before, entry, imports)
    except _Cut:
        return NoCode("length", "The answer was cut off at its token limit.")
    except NoMatch as error:
        return NoCode("unusable", f"The answer cannot be used: {error}.")
    return _checked(source, notes, before, entry, imports)


class _Cut(Exception):
    """The answer ends in the middle of its code."""


def _nothing(finish: str, thought: bool) -> NoCode:
    if thought and finish == "length":
        return NoCode("thinking", "The model used its whole budget for thinking.")
    if thought:
        return NoCode("thinking", "The model thought and gave no answer.")
    if finish == "length":
        return NoCode("length", "The answer was cut off before its first word.")
    return NoCode("empty", "The model gave an empty answer.")


def _without_thoughts(text: str) -> tuple[str, bool]:
    """The answer without tagged thoughts, and whether there were any."""
    bare = _THOUGHT.sub("", text)
    if not re.search(r"<(?:think|thinking|thought|reasoning)>", bare, re.IGNORECASE):
        bare = _THOUGHT_END.sub("", bare)
    if not _CODE_BEGINS.match(bare.lstrip()):
        bare = _THOUGHT_OPEN.sub("", bare)
    return bare, bare != text


def _source_in(
    answer: str, finish: str, before: str | None, entry: str, imports: Mapping[str, str]
) -> tuple[str, list[str]]:
    """The source as it stands in the answer. Raises _Cut and NoMatch."""
    answer = _from_json(answer)
    if has_blocks(answer):
        whole = _whole_file(answer, finish, entry, imports, besides_blocks=True)
        if whole is not None:
            return whole
        if before is None:
            raise NoMatch("there is no program yet that its blocks could change")
        if finish == "length":
            raise _Cut
        return applied(before, blocks_in(answer)), []
    whole = _whole_file(answer, finish, entry, imports, besides_blocks=False)
    if whole is not None:
        return whole
    if finish == "length":
        raise _Cut
    raise NoMatch(_why_not(answer, entry))


def _from_json(answer: str) -> str:
    """The code inside of a JSON object, where the whole answer is one."""
    try:
        held = json.loads(answer)
    except (ValueError, RecursionError):
        return answer
    texts = [v for v in held.values() if isinstance(v, str)] if isinstance(held, dict) else []
    return max(texts, key=len) if texts else answer


def _whole_file(
    answer: str, finish: str, entry: str, imports: Mapping[str, str], besides_blocks: bool
) -> tuple[str, list[str]] | None:
    """A complete module in the answer: in fences, or bare; None where there is none."""
    fences = [f for f in fences_in(answer) if f.may_be_python and not has_blocks(f.code)]
    for fence in reversed(fences):
        code = _tidy(fence.code)
        if not _defines(code, entry):
            continue
        if not fence.closed and finish == "length":
            raise _Cut
        notes = [] if fence.closed else ["The answer's code block had no end."]
        return _with_other_fences(code, fence, fences, imports, notes)
    if fences or besides_blocks:
        return None
    bare = _bare_code(answer, entry)
    if bare is not None and finish == "length":
        raise _Cut
    return (bare, []) if bare is not None else None


def _with_other_fences(
    code: str, fence: Fence, fences: list[Fence], imports: Mapping[str, str], notes: list[str]
) -> tuple[str, list[str]]:
    """With the other fences that define what this one needs: kernels apart from the entry."""
    missing = unbound(code) - set(imports)
    parts = [
        tidy
        for other in fences
        if other is not fence and (tidy := _tidy(other.code)) and _binds(tidy) & missing
    ]
    if not parts:
        return code, notes
    return "\n\n".join([*parts, code]), [*notes, "The answer's code came in several blocks."]


def _bare_code(answer: str, entry: str) -> str | None:
    """Code without a fence: from a line that begins code to the last before prose goes on."""
    lines = _LANGUAGE_LINE.sub("", answer).splitlines()
    defines = re.compile(rf"(?:class|def)\s+{re.escape(entry)}\b")
    last = max((at for at, line in enumerate(lines) if defines.match(line)), default=-1)
    starts = [at for at, line in enumerate(lines[: last + 1]) if _CODE_BEGINS.match(line)]
    for start in starts[:_MOST_STARTS]:
        end = len(lines)
        for _ in range(_MOST_ENDS):
            code = _tidy("\n".join(lines[start:end]))
            if _defines(code, entry):
                return code
            end = start + _wrong_line(code) - 1
            if end <= last:
                break
    return None


def _wrong_line(code: str) -> int:
    """Line of the first syntax error, from 1; 0 where there is none."""
    try:
        ast.parse(code)
    except SyntaxError as error:
        return error.lineno or 0
    except _NOT_PYTHON:
        pass
    return 0


def _tidy(code: str) -> str:
    """Code without a stray language line, with tabs and entities put right where it needs that."""
    code = _LANGUAGE_LINE.sub("", code)
    for change in (str, lambda text: text.expandtabs(4), html.unescape):
        changed = change(code)
        if _parses(changed):
            return changed
    return code


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except _NOT_PYTHON:
        return False
    return True


def _defines(code: str, entry: str) -> bool:
    return _parses(code) and entry in _binds(code)


def _binds(code: str) -> set[str]:
    """Names that the code's top level binds; none where it does not parse."""
    try:
        tree = ast.parse(code)
    except _NOT_PYTHON:
        return set()
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {t.id for t in targets if isinstance(t, ast.Name)}
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {alias.asname or alias.name.split(".")[0] for alias in names}
    return found


def unbound(code: str) -> set[str]:
    """Names that the code reads and nothing in it binds, builtins left out."""
    tree = ast.parse(code)
    bound: set[str] = set(dir(builtins)) | _binds(code)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                bound |= {alias.asname or alias.name.split(".")[0] for alias in names}
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return read - bound


def _why_not(answer: str, entry: str) -> str:
    """Why no module was found."""
    fences = [fence for fence in fences_in(answer) if fence.may_be_python]
    codes = [_tidy(fence.code) for fence in fences]
    if any(fence.language == "diff" for fence in fences_in(answer)):
        return "it is a diff, not a whole file or SEARCH/REPLACE blocks"
    broken = next((code for code in reversed(codes) if not _parses(code)), None)
    if broken is not None:
        return f"its code is not Python ({_syntax_error(broken)})"
    if codes:
        return f"its code does not define {entry}"
    if f"class {entry}" in answer or f"def {entry}" in answer:
        return "its code is not Python"
    return "it holds no Python code"


def _syntax_error(code: str) -> str:
    try:
        ast.parse(code)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except _NOT_PYTHON as error:
        return str(error)
    return ""


def _checked(
    source: str, notes: list[str], before: str | None, entry: str, imports: Mapping[str, str]
) -> Code | NoCode:
    if not _parses(source):
        problem = _syntax_error(source)
        return NoCode("unusable", f"The answer's program is not Python ({problem}).")
    if entry not in _binds(source):
        return NoCode("unusable", f"The answer's program does not define {entry}.")
    forgotten = sorted(unbound(source) & set(imports), key=list(imports).index)
    if forgotten:
        source = _with_imports(source, [imports[name] for name in forgotten])
        notes = [*notes, f"The answer's imports lacked {', '.join(forgotten)}."]
    source = source.strip("\n") + "\n"
    if before is not None and _same(source, before):
        return NoCode("unusable", "The answer is the program as it was.")
    return Code(source, tuple(notes))


def _with_imports(source: str, lines: Iterable[str]) -> str:
    """With imports after the docstring and imports from __future__."""
    tree = ast.parse(source)
    after = 0
    for at, node in enumerate(tree.body):
        docstring = at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            break
        after = node.end_lineno or 0
    text = source.splitlines()
    head = text[:after] + ([""] if after else [])
    return "\n".join([*head, *lines, *text[after:]]) + "\n"


def _same(one: str, other: str) -> bool:
    return [line.rstrip() for line in one.strip().splitlines()] == [
        line.rstrip() for line in other.strip().splitlines()
    ]

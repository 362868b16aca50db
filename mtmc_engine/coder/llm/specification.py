"""What a language model is told about each kind of step: TOML files beside this module."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

import msgspec
from msgspec import Struct


class Example(Struct, frozen=True, forbid_unknown_fields=True):
    """One worked example.

    reference: what it computes, in PyTorch. before: the program that the answer starts from; ""
    where that is the reference. answer: a reply as the rules want it.
    inputs: Python for the arguments that it is tested with; not part of a prompt.
    verdict: of a repair's example, what is wrong with `before`; not part of a prompt.
    """

    title: str
    inputs: str
    reference: str
    answer: str
    before: str = ""
    verdict: str = ""

    def text(self, number: int) -> str:
        """The example as a prompt shows it."""
        parts = [f"Example {number}: {self.title}", _code("The reference:", self.reference)]
        if self.before:
            parts.append(_code("The program:", self.before))
        return "\n".join([*parts, "The answer:", self.answer.strip()])


class Specification(Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of step, or of repair: how it is done and what goes wrong."""

    kind: str
    summary: str
    procedure: tuple[str, ...]
    pitfalls: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()

    def text(self, examples: int | None = None) -> str:
        """The specification with its first `examples` examples, all by default."""
        lines = [f"# How to do it: {self.kind}", self.summary]
        lines += [f"{number}. {step}" for number, step in enumerate(self.procedure, start=1)]
        if self.pitfalls:
            lines += ["Pitfalls:", *(f"- {pitfall}" for pitfall in self.pitfalls)]
        shown = self.examples[:examples]
        lines += ["", *(e.text(number) for number, e in enumerate(shown, start=1))] if shown else []
        return "\n".join(lines)


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """What holds for every step. answer: the two forms of a reply."""

    rules: str
    answer: str


def kinds() -> tuple[str, ...]:
    """All kinds that have a specification."""
    files = (resources.files("mtmc_engine.coder.llm") / "prompts").iterdir()
    names = sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))
    return tuple(name for name in names if name != "common")


@cache
def specification(kind: str) -> Specification:
    """The specification of a kind; a plain one where it has no file."""
    if kind not in kinds():
        return Specification(
            kind,
            "Carry out the step as its phrase and its reason say, on its region only.",
            ("Keep what the program computes, and every region that the step does not name.",),
        )
    return msgspec.convert(_table(kind), Specification)


@cache
def rules() -> Rules:
    """The rules of the house."""
    return msgspec.convert(_table("common"), Rules)


def _table(name: str) -> dict[str, Any]:
    file = resources.files("mtmc_engine.coder.llm") / "prompts" / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _code(title: str, code: str) -> str:
    return f"{title}\n```python\n{code.strip()}\n```"

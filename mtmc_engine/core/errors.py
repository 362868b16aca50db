"""Errors that a user can act on: one sentence, what to do next, and an exit code."""

from __future__ import annotations


class MtmcError(Exception):
    """An expected failure. `str(error)` is one sentence that says what happened and what to do.

    exit_code: what the command line returns for it.
    """

    exit_code = 2


class UsageError(MtmcError):
    """Bad input: a file, an option, a configuration or a model that cannot be used."""


class ReferenceFailed(MtmcError):
    """The user's own operator fails on its own inputs.

    line: in the user's file, 0 where unknown.
    """

    def __init__(self, sentence: str, line: int = 0) -> None:
        super().__init__(sentence)
        self.line = line


class NobodyToDecide(MtmcError):
    """A decision is due, no policy was given and nobody can answer."""

    exit_code = 3


class WorkerDied(MtmcError):
    """A child process of our own ended without an answer."""

    exit_code = 1

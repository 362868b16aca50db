"""Where events go: into the journal first, then to the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from mtmc_engine.core.events import (
    AnyEvent,
    CoderWaits,
    Notice,
    PhaseChanged,
    ReplyPart,
    encode,
)
from mtmc_engine.core.program import Program
from mtmc_engine.session.journal import Journal

PASSING = (PhaseChanged, ReplyPart, CoderWaits)


class Outlet:
    """Sends events; one that a client has seen is on disk. `journal` is None before it exists.

    Phases, slices of replies and waits are only shown: they say what happens now and mean nothing
    later.
    """

    def __init__(self, write: Callable[[bytes], None], journal: Journal | None = None) -> None:
        self._write = write
        self.journal = journal

    def emit(
        self,
        *events: AnyEvent,
        program: Program | None = None,
        facts: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Store the events in one transaction, then show them.

        program: of a new node. facts: values about the session that become true with them.
        """
        if self.journal is not None:
            lasting = [event for event in events if not isinstance(event, PASSING)]
            if lasting or facts:
                self.journal.write(*lasting, program=program, facts=facts)
        self.show(*events)

    def show(self, *events: AnyEvent) -> None:
        """Show events that are already stored, or need not be."""
        for event in events:
            self._write(encode(event))

    def phase(self, phase: str, detail: str = "", budget_s: float | None = None) -> None:
        """Say what happens now, and in how many seconds it will be given up."""
        self.emit(PhaseChanged(phase, detail, budget_s=budget_s))

    def notice(self, text: str) -> None:
        """Tell the user something worth knowing."""
        self.emit(Notice("info", text))

    def warn(self, text: str) -> None:
        """Tell the user something that went wrong without ending the run."""
        self.emit(Notice("warning", text))

"""Where events go: into the journal first, then to the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from mtmc_engine.core.events import AnyEvent, Notice, PhaseChanged, encode
from mtmc_engine.core.program import Program
from mtmc_engine.session.journal import Journal


class Outlet:
    """Sends events; one that a client has seen is on disk. `journal` is None before it exists.

    Phases are only shown: they say what happens now and mean nothing later.
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
            lasting = [event for event in events if not isinstance(event, PhaseChanged)]
            self.journal.write(*lasting, program=program, facts=facts)
        self.show(*events)

    def show(self, *events: AnyEvent) -> None:
        """Show events that are already stored, or need not be."""
        for event in events:
            self._write(encode(event))

    def phase(self, phase: str, detail: str = "") -> None:
        """Say what happens now."""
        self.emit(PhaseChanged(phase, detail))

    def notice(self, text: str) -> None:
        """Tell the user something worth knowing."""
        self.emit(Notice("info", text))

    def warn(self, text: str) -> None:
        """Tell the user something that went wrong without ending the run."""
        self.emit(Notice("warning", text))

"""What a walk tells, heard inside the engine instead of being written to a client."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from mtmc_engine.core.events import AnyEvent, GateFinished, Notice, PlanProposed
from mtmc_engine.session.outlet import Outlet


class Listener(Outlet):
    """Adds up the seconds of each phase and keeps warnings.

    on_plan: called with each plan, so that its steps can be compiled ahead.
    """

    def __init__(self, on_plan: Callable[[PlanProposed], None]) -> None:
        super().__init__(lambda _: None)
        self.phases: dict[str, float] = defaultdict(float)
        self.warnings: list[str] = []
        self._on_plan = on_plan

    def show(self, *events: AnyEvent) -> None:
        """Take events."""
        for event in events:
            match event:
                case PlanProposed():
                    self.phases["plan"] += event.seconds
                    self._on_plan(event)
                case GateFinished():
                    self.phases[event.result.gate.value] += event.result.seconds
                case Notice(level="warning"):
                    self.warnings.append(event.text)
                case _:
                    pass

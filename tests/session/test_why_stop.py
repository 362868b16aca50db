"""What is said where the planner would stop: only what its scores bear out."""

from dataclasses import dataclass, field

import pytest

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.core.events import PlanProposed
from mtmc_engine.session.decisions import why_stop

STOP = Action("stop", "stop", reason="The plan ends here: the program is at 81 % of its roofline.")
BY_MODEL = "No step that is left promises more than 1.5 % by the cost model."
BY_PLANNER = "The planner rates no step that is left above stopping."


@dataclass
class Run:
    proposal: PlanProposed
    current: str = "n1"
    begun: set[str] = field(default_factory=set)

    def tried(self, node: str) -> set[str]:
        return self.begun


def run(begun=(), **scores):
    """Options with the roofline's probability each; None where it took no part."""
    options = tuple(
        ScoredAction(STOP if name == "stop" else Action("retile", name), 0.5,
                     {} if score is None else {"roofline": score})
        for name, score in scores.items()
    )  # fmt: skip
    return Run(PlanProposed("n1", 2, options, "p", 0.1, ""), begun=set(begun))


@pytest.mark.parametrize(
    ("session", "finding"),
    [
        (run(stop=0.8, r1=0.1, r2=0.1), BY_MODEL),
        (run(stop=0.3, r1=0.6), BY_PLANNER),
        (run(("r1",), stop=0.3, r1=0.6, r2=0.1), BY_MODEL),
        (run(stop=None, r1=None), BY_PLANNER),
        (run(("r1",), stop=0.3, r1=0.6), "No other step is left here."),
    ],
)
def test_the_reason_is_true(session, finding):
    assert why_stop(session, STOP) == f"{finding} {STOP.reason}"

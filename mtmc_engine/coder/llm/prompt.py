"""The prompt of one step: stable parts first, so that servers can reuse what they have read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mtmc_engine.coder.llm.quoting import quoted
from mtmc_engine.coder.llm.scene import machine_text, reference_text, step_text
from mtmc_engine.coder.llm.specification import rules, specification
from mtmc_engine.coder.seam import CoderAsk, Feedback
from mtmc_engine.core.action import Action
from mtmc_engine.core.chat import Message
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task

# Programs of more lines are answered with SEARCH/REPLACE blocks.
WHOLE_FILE_LINES = 120


@dataclass(frozen=True)
class Prompt:
    """What a model is asked, in parts that can be left out.

    system and reference are the same for every step of a session, the kind's specification for
    steps of one kind; what follows changes.
    before: the source that SEARCH/REPLACE blocks change. starts_short: whether the program that
    the step starts from is short enough for a whole file.
    examples: how many are shown, None for all. repair_examples: the same for a repair's.
    """

    system: str
    kind: str
    reference: str
    program: str
    step: str
    before: str
    starts_short: bool
    evidence: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    feedback: Feedback | None = None
    examples: int | None = None
    repair_examples: int | None = 1
    more: tuple[Message, ...] = ()

    @property
    def wants_whole(self) -> bool:
        """Whether the answer is to be a whole file."""
        return _is_short(self.before)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation: a repair's goes on from that of the step, word for word."""
        asked = Message("user", "\n\n".join(filter(None, self._sections())))
        found = [Message("system", self.system), asked]
        if self.feedback is not None:
            found.append(Message("assistant", f"```python\n{self.feedback.source.strip()}\n```"))
            found.append(Message("user", self._repair(self.feedback)))
        return (*found, *self.more)

    def _sections(self) -> Sequence[str]:
        return (
            self.reference,
            specification(self.kind).text(self.examples),
            self.program,
            self.step,
            _listed("# Evidence", "evidence", self.evidence),
            _listed("# Verdicts on the last steps", "verdicts", self.verdicts),
            _listed("# Hints of the user on how to optimise", "hints", self.hints),
            _wanted("Carry out the step", self.starts_short),
        )

    def _repair(self, feedback: Feedback) -> str:
        facts = "\n".join(feedback.facts) or feedback.log.strip()[-800:]
        return "\n\n".join(
            [
                specification(feedback.repair).text(self.repair_examples),
                f"# What the judge found\nGate {feedback.gate}, verdict {feedback.verdict}.\n"
                + quoted("finding", f"{feedback.sentence}\n{facts}".strip()),
                _wanted("Repair your last answer", self.wants_whole),
            ]
        )

    def after(self, answer: str, reason: str) -> Prompt:
        """The prompt with an unusable answer and why it is."""
        said = Message("assistant", answer.strip() or "(nothing)")
        again = Message("user", f"{reason} {_wanted('Answer again', self.wants_whole)}")
        return replace(self, more=(*self.more, said, again))


def prompt_for(task: Task, program: Program, action: Action, ask: CoderAsk) -> Prompt:
    """The prompt of a step. Raises UsageError where the reference's file is gone."""
    house = rules()
    numbered = f"# The program now ({len(program.source.splitlines())} lines)\n"
    return Prompt(
        system=f"{house.rules.strip()}\n\n{house.answer.strip()}\n\n{machine_text(task.device)}",
        kind=action.kind,
        reference=reference_text(task),
        program=numbered + quoted("program", program.source),
        step=step_text(task, program, action),
        before=program.source if ask.feedback is None else ask.feedback.source,
        evidence=ask.evidence,
        verdicts=ask.verdicts,
        starts_short=_is_short(program.source),
        hints=ask.hints,
        feedback=ask.feedback,
    )


def _listed(title: str, name: str, lines: tuple[str, ...]) -> str:
    return f"{title}\n{quoted(name, chr(10).join(lines))}" if lines else ""


def _is_short(source: str) -> bool:
    return len(source.splitlines()) <= WHOLE_FILE_LINES


def _wanted(order: str, whole: bool) -> str:
    form = "WHOLE FILE" if whole else "SEARCH/REPLACE blocks"
    return f"{order}. Answer with: {form}."

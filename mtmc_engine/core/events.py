"""The protocol: what the engine says and what a client may answer, one JSON object a line.

This module is the schema. The displays, the journal and recordings all read these types, and
`docs/protocol.md` is generated from them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.core.measurement import GroupCost, Measurement, TimeKind
from mtmc_engine.core.program import Region
from mtmc_engine.core.verdict import Gate, GateResult, Verdict

PROTOCOL_VERSION = 1


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


Choice = Literal["approve", "reject", "edit", "skip", "retry", "stop"]


class Event(Struct, frozen=True, tag_field="event", tag=_snake):
    """Something that happened in the engine."""


class SessionStarted(Event, frozen=True):
    """First event of a run. `journal` is the session's file, `resumed` how many steps it had.

    elapsed_s: how long the session was at work before it was resumed.
    coder_address: where the coder's language model is asked; "" where it has none. Never a key.
    """

    session: str
    file: str
    journal: str
    planner: str
    coder: str
    target: str
    max_steps: int
    resumed: int = 0
    elapsed_s: float = 0.0
    coder_address: str = ""
    protocol: int = PROTOCOL_VERSION


class PhaseChanged(Event, frozen=True):
    """What the engine is doing now: "capture", "plan", "code", "prove", "time", "wait", "export".

    done, total: only where something is counted. budget_s: when it will be given up.
    """

    phase: str
    detail: str = ""
    done: int | None = None
    total: int | None = None
    budget_s: float | None = None


class TaskOpened(Event, frozen=True):
    """The user's file is understood.

    device: the device card's name; `measured` says whether times are measured here.
    instead: where they are not: what times there are, "replayed" ones only in tests.
    """

    task: str
    entry: str
    shapes: tuple[str, ...]
    dtypes: tuple[str, ...]
    device: str
    measured: bool
    captured: bool
    regions: tuple[Region, ...]
    source: str
    notes: tuple[str, ...] = ()
    instead: Literal["estimated", "replayed", "none"] = "estimated"


class NodeAdded(Event, frozen=True):
    """A program entered the plan tree, or its state there changed. Node "n0" is the original.

    state: "open", "kept", "rejected" or "failed". regions: of this program.
    diff:  unified diff against the parent's source.
    step, attempt, sample, coder: as in CandidateReady; all attempts of a step stay in the tree.
    """

    node: str
    parent: str | None
    action: Action | None
    state: str
    source: str
    digest: str
    diff: str = ""
    regions: tuple[Region, ...] = ()
    verdict: Verdict | None = None
    measurement: Measurement | None = None
    step: int = 0
    attempt: int = 1
    sample: int = 0
    coder: str = ""


class PlanProposed(Event, frozen=True):
    """The planner ranked the legal actions of `node`, best first. `state_text` is what it read."""

    node: str
    step: int
    options: tuple[ScoredAction, ...]
    planner: str
    seconds: float
    state_text: str
    costs: tuple[GroupCost, ...] = ()


class StepStarted(Event, frozen=True):
    """A coder begins to implement `action` on `node`; `attempt` counts from 1.

    repair:  "fix_compile", "fix_memory" or "fix_math" where the attempt before failed and goes
             back to the coder by itself.
    samples: how many candidates are asked for.
    """

    step: int
    node: str
    action: Action
    probability: float
    attempt: int = 1
    repair: str = ""
    samples: int = 1


class PromptReady(Event, frozen=True):
    """A language model is about to be asked; nothing has been sent yet.

    attempt, sample: of the step; attempts count from 1, samples from 0.
    address: where the prompt goes. tokens: of the prompt, estimated.
    waits: it is sent when the client answers with `send`.
    """

    step: int
    attempt: int
    sample: int
    coder: str
    address: str
    messages: tuple[Message, ...]
    tokens: int
    waits: bool = False


class ReplyPart(Event, frozen=True):
    """A slice of a reply as it comes, at most ten a second. Not kept in the journal.

    thinking: the model talks to itself; this is no part of its answer.
    """

    step: int
    attempt: int
    sample: int
    text: str
    thinking: bool = False


class ReplyFinished(Event, frozen=True):
    """A language model's whole reply, or what came of one that was broken off or cancelled.

    finish: the server's reason: "stop", "length", "content_filter", …; "" where it was broken off.
    usage: estimated where the server gave none. cost_usd: None where the price is unknown.
    outcome: "code", or why there is none.
    """

    step: int
    attempt: int
    sample: int
    text: str
    finish: str
    usage: Usage | None
    seconds: float
    cost_usd: float | None
    outcome: str


class CoderWaits(Event, frozen=True):
    """The coder waits `seconds` before it asks again. tries_left: of its error budget."""

    coder: str
    reason: str
    seconds: float
    tries_left: int


class BudgetChanged(Event, frozen=True):
    """What language models have used in this session, and the limits, None where there is none.

    cost_usd: None where the price of a model is unknown.
    seconds: wall-clock time of waiting for them.
    """

    tokens: int
    cost_usd: float | None
    seconds: float
    limit_tokens: int | None = None
    limit_usd: float | None = None
    limit_seconds: float | None = None


class CandidateReady(Event, frozen=True):
    """The coder answered: a program that is proven next.

    attempt: of the step, from 1. sample: from 0, of those that one attempt asks for.
    """

    node: str
    parent: str
    source: str
    diff: str
    coder: str
    seconds: float
    attempt: int = 1
    sample: int = 0


class GateStarted(Event, frozen=True):
    node: str
    gate: Gate


class GateFinished(Event, frozen=True):
    node: str
    result: GateResult


class VerdictReached(Event, frozen=True):
    """All gates are through. `measurement` is None where values were not proven."""

    node: str
    verdict: Verdict


class DecisionNeeded(Event, frozen=True):
    """The engine waits. `choices` is closed; the first is the suggestion.

    about: "program": whether to keep it; "stop": whether to end here; "coder": what to do since
    it cannot be asked, which `suggestion_reason` explains.
    """

    node: str
    step: int
    action: Action
    choices: tuple[Choice, ...]
    suggestion_reason: str = ""
    about: Literal["program", "stop", "coder"] = "program"


class Decided(Event, frozen=True):
    """by: "user", "policy" or "replay"."""

    node: str
    step: int
    action: Action
    choice: Choice
    by: str
    reason: str = ""


class BestChanged(Event, frozen=True):
    """The best proven node; `ratio` is against the original.

    All None where nothing can be timed and the user kept the program by hand.
    """

    node: str
    ratio: float | None
    time_us: float | None
    time_kind: TimeKind | None


class SourceChanged(Event, frozen=True):
    """The user's file changed on disk: the tree is stale."""

    file: str
    digest: str


class RunPaused(Event, frozen=True):
    paused: bool


class Notice(Event, frozen=True):
    """Something the user should know. level: "info", "warning" or "error"."""

    level: Literal["info", "warning", "error"]
    text: str


class Exported(Event, frozen=True):
    folder: str
    files: tuple[str, ...]


class AttemptSummary(Struct, frozen=True):
    """One candidate of a step. verdict: "" where it was not judged."""

    node: str
    attempt: int
    sample: int
    coder: str
    verdict: str
    reason: str = ""


class StepSummary(Struct, frozen=True):
    """One step as scripts read it.

    coder: who wrote the candidate that was decided on. attempts: all candidates, oldest first.
    """

    step: int
    node: str
    action: str
    phrase: str
    verdict: str
    approved: bool
    time_us: float | None
    time_kind: TimeKind | None
    ratio_to_original: float | None = None
    reason: str = ""
    planner_seconds: float = 0.0
    coder: str = ""
    attempts: tuple[AttemptSummary, ...] = ()


class BestSummary(Struct, frozen=True):
    """The answer of a session.

    is_original: no step was kept; the answer is the original. reason: why it is that, or why the
    answer has no time, in one sentence; "" otherwise.
    """

    node: str
    is_original: bool
    time_us: float | None
    time_kind: TimeKind | None
    ratio_to_original: float | None
    against: dict[str, float] = {}
    actions: tuple[str, ...] = ()
    reason: str = ""


class SessionFinished(Event, frozen=True):
    """Last event of a run.

    stopped_by: "planner", "steps", "until", "user", "coder" (it could not be asked and nobody was
    there to say what to do), "budget" or "error".
    """

    task: str
    target: str
    steps: tuple[StepSummary, ...]
    best: BestSummary
    export: str | None
    session: str
    stopped_by: str
    exit_code: int = 0


class Failed(Event, frozen=True):
    """The run cannot go on. `text` is one sentence; the process ends with `exit_code`."""

    text: str
    exit_code: int
    kind: str = "usage"


class Command(Struct, frozen=True, tag_field="command", tag=_snake):
    """Something a client asks of the engine."""


class Decide(Command, frozen=True):
    """Answers a DecisionNeeded; node "" means the pending one.

    source: the edited program, for "edit".
    """

    choice: Choice
    node: str = ""
    reason: str = ""
    source: str | None = None


class ApproveAll(Command, frozen=True):
    """From now on the policy of --yes decides."""


class Hint(Command, frozen=True):
    """A hint for planner and coder. level: "algorithm", "data flow" or "low level"."""

    text: str
    level: str = "algorithm"


class Branch(Command, frozen=True):
    """Continue from this node of the tree."""

    node: str


class Pause(Command, frozen=True):
    paused: bool


class Export(Command, frozen=True):
    """folder "": beside the user's file."""

    folder: str = ""


class Replay(Command, frozen=True):
    """Apply the approved plan to the changed source."""


class Send(Command, frozen=True):
    """Answers a PromptReady that waits: send the prompt."""


class Stop(Command, frozen=True):
    reason: str = ""


AnyEvent = (
    SessionStarted
    | PhaseChanged
    | TaskOpened
    | NodeAdded
    | PlanProposed
    | StepStarted
    | PromptReady
    | ReplyPart
    | ReplyFinished
    | CoderWaits
    | BudgetChanged
    | CandidateReady
    | GateStarted
    | GateFinished
    | VerdictReached
    | DecisionNeeded
    | Decided
    | BestChanged
    | SourceChanged
    | RunPaused
    | Notice
    | Exported
    | SessionFinished
    | Failed
)

AnyCommand = Decide | ApproveAll | Hint | Branch | Pause | Export | Replay | Send | Stop

encode = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(AnyEvent).decode
decode_command = msgspec.json.Decoder(AnyCommand).decode


def schema() -> dict[str, Any]:
    """JSON schema of both directions."""
    return {
        "version": PROTOCOL_VERSION,
        "events": msgspec.json.schema(AnyEvent),
        "commands": msgspec.json.schema(AnyCommand),
    }

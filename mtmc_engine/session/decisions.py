"""Who decides a step, the user or the policy, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.core.events import (
    AnyCommand,
    ApproveAll,
    Branch,
    Choice,
    Decide,
    Decided,
    DecisionNeeded,
    Notice,
    Replay,
    Stop,
)
from mtmc_engine.core.verdict import Class
from mtmc_engine.plan import policy
from mtmc_engine.plan.policy import Ruling
from mtmc_engine.plan.tree import NodeState, TreeNode
from mtmc_engine.planner.roofline import STOP_GAIN
from mtmc_engine.session.requests import Stopped, branch_target, serve
from mtmc_engine.session.run import Run, StepRecord, best_events, node_event


@dataclass(frozen=True)
class Answer:
    """A decision. by: "user", "policy" or "replay"; source: the edited program of an "edit"."""

    choice: Choice
    by: str
    state: NodeState
    reason: str = ""
    source: str | None = None


async def decide(run: Run, record: StepRecord) -> Answer:
    """The decision on a candidate that was proven or failed: by policy, else by the user.

    Raises Stopped where the user ends the run, NobodyToDecide where nobody can answer.
    """
    node = run.tree[record.node]
    assert node.verdict is not None
    if node.verdict.verdict is Class.REFERENCE_ERROR:
        raise ReferenceFailed(node.verdict.reason)
    ruling = policy.decide(node.verdict, record.action, run.task.policy, node.measurement)
    choices = _choices(node, ruling)
    question = DecisionNeeded(node.id, record.step, record.action, choices, ruling.sentence)
    answer = await _ask(run, question, node)
    return answer or Answer(ruling.choice, "policy", ruling.state, ruling.sentence)


async def confirm_stop(run: Run, stop: Action) -> bool:
    """Whether the planner's advice to stop is followed."""
    node = run.tree[run.current]
    choices: tuple[Choice, ...] = ("approve", "reject", "stop")
    reason = why_stop(run, stop)
    question = DecisionNeeded(node.id, run.next_step, stop, choices, reason, "stop")
    policy_says = Answer("approve", "policy", node.state, reason)
    answer = await _ask(run, question, node) or policy_says
    run.outlet.emit(Decided(node.id, run.next_step, stop, answer.choice, answer.by, answer.reason))
    if answer.choice == "approve":
        return True
    run.refused_stops.add(node.id)
    return False


async def ask_without_coder(run: Run, record: StepRecord, why: str) -> Answer:
    """What the user says to do where the coder cannot be asked: "retry" or "skip".

    Raises Stopped where the policy decides, and where the user ends the run, NobodyToDecide.
    """
    node = run.tree[record.node or record.parent]
    choices: tuple[Choice, ...] = ("retry", "skip", "stop")
    question = DecisionNeeded(node.id, record.step, record.action, choices, why, "coder")
    answer = await _ask(run, question, node)
    if answer is None:
        run.outlet.emit(Notice("error", f"The run ends, since its coder cannot be asked: {why}"))
        raise Stopped(why, by="coder")
    return replace(answer, state=dropped_state(run, record))


def why_stop(run: Run, stop: Action) -> str:
    """What the planner found about the steps that are left, and where the program stands."""
    assert run.proposal is not None
    tried = run.tried(run.current)
    left = [o for o in run.proposal.options if o.action.phrase not in tried]
    scores = {o.action.phrase: o.parts["roofline"] for o in left if "roofline" in o.parts}
    gain = f"{STOP_GAIN - 1:.1%}".replace("%", " %")
    if len(left) == 1:
        finding = "No other step is left here."
    elif scores and scores.get(stop.phrase) == max(scores.values()):
        # The cost model scores stop at this gain or less.
        finding = f"No step that is left promises more than {gain} by the cost model."
    else:
        finding = "The planner rates no step that is left above stopping."
    return f"{finding} {stop.reason}".strip()


def conclude(run: Run, record: StepRecord, answer: Answer) -> None:
    """Record a step's decision with all that follows from it, in one transaction."""
    record.choice, record.reason = answer.choice, answer.reason
    decided = Decided(
        record.node or record.parent,
        record.step,
        record.action,
        answer.choice,
        answer.by,
        answer.reason,
    )
    changed: list[TreeNode] = []
    if record.node:
        changed.append(run.tree.set_state(record.node, answer.state))
    others = [node for node in record.nodes if node != record.node]
    changed += [
        run.tree.set_state(node, "rejected") for node in others if run.tree[node].state == "open"
    ]
    if answer.choice == "approve":
        paid = policy.paid_off(run.tree, record.node)
        changed += [run.tree.set_state(node, "kept") for node in paid]
        run.current = record.node
        run.proposal = None
    events = [node_event(run, node) for node in changed]
    run.outlet.emit(decided, *events, *best_events(run))


def dropped_state(run: Run, record: StepRecord) -> NodeState:
    """State of a candidate that is not kept: rejected where it was proven, else failed."""
    verdict = run.tree[record.node].verdict if record.node else None
    return "rejected" if verdict is None or verdict.proven else "failed"


async def _ask(run: Run, question: DecisionNeeded, node: TreeNode) -> Answer | None:
    """The user's answer, or None where the policy decides."""
    if run.follows_policy:
        return None
    run.outlet.emit(question)
    run.outlet.phase("wait", question.action.phrase)
    while True:
        command = await run.inbox.next()
        match command:
            case Stop():
                raise Stopped(command.reason)
            case ApproveAll():
                return None
            case Branch() if branch_target(run, command.node) is None:
                pass
            case Branch() | Replay():
                run.inbox.put_back(command)
                return Answer("skip", "user", _dropped(node), "The user went elsewhere.")
            case Decide() if _fits(run, command, question):
                return _answer(command, node)
            case Decide():
                pass
            case _:
                serve(run, command)


def _answer(command: Decide, node: TreeNode) -> Answer:
    if command.choice == "stop":
        raise Stopped(command.reason)
    state = "kept" if command.choice == "approve" else _dropped(node)
    return Answer(command.choice, "user", state, command.reason, command.source)


def _dropped(node: TreeNode) -> NodeState:
    if node.parent is None or node.verdict is None:
        return node.state
    return "rejected" if node.verdict.proven else "failed"


def _fits(run: Run, command: AnyCommand, question: DecisionNeeded) -> bool:
    """Whether a decision answers the question; the user is told where it does not."""
    assert isinstance(command, Decide)
    if command.node not in ("", question.node):
        run.outlet.warn(f"The decision on {command.node} came too late: {question.node} waits.")
        return False
    if command.choice not in question.choices:
        choices = ", ".join(question.choices)
        run.outlet.warn(f"'{command.choice}' is not possible here; possible are {choices}.")
        return False
    if command.choice == "edit" and command.source is None:
        run.outlet.warn("An edit needs the edited source.")
        return False
    return True


def _choices(node: TreeNode, ruling: Ruling) -> tuple[Choice, ...]:
    """What may be answered; the policy's choice comes first."""
    assert node.verdict is not None
    usual: list[Choice] = ["reject", "edit", "skip", "retry", "stop"]
    if node.verdict.proven or ruling.choice == "approve":
        usual.insert(0 if ruling.choice == "approve" else 1, "approve")
    return tuple(usual)

"""Gate integrity: the candidate did what it was asked and nothing beside."""

from __future__ import annotations

from typing import Any

from mtmc_engine.core.verdict import Class
from mtmc_engine.proof.gates.proof import Outcome, Proof
from mtmc_engine.proof.wire import Trace

# Below this share of the device time its own kernels count as decoration.
_LEAST_SHARE = 0.05


def check_integrity(proof: Proof) -> Outcome:
    """Inputs untouched, outputs not aliased, own kernels ran, global state as before."""
    for change in proof.ran.state_changes:
        proof.warn(f"it changes global state: {change}")
    mutated = find_mutated(proof)
    if mutated:
        return mutated
    found = _aliased(proof) or _reused(proof) or _drifted(proof)
    return found or _own_kernels(proof)


def find_mutated(proof: Proof) -> Outcome | None:
    """Inputs that changed though neither the reference changes them nor the task allows it."""
    if proof.subject.task.policy.inplace:
        return None
    cases = proof.counted()
    for call in proof.ran.calls:
        truth = proof.truths.cases[call.case]
        allowed = {f.path for f in truth.outputs if f.kind == "input"}
        bad = [i for i in call.mutated if f"input {i}" not in allowed]
        if bad:
            name = cases[call.case].name
            names = proof.subject.task.arguments
            which = ", ".join(names[i] if i < len(names) else f"input {i}" for i in bad)
            sentence = f"it writes to its input {which} ({name})"
            return Outcome(Class.MUTATED_INPUT, sentence, {"case": name, "inputs": bad})
    return None


def _aliased(proof: Proof) -> Outcome | None:
    """Outputs in an input's storage or in one another's, where the reference's are not."""
    if proof.subject.task.policy.inplace:
        return None
    cases = proof.counted()
    for call in proof.ran.calls:
        allowed = proof.truths.cases[call.case].aliased
        bad = [path for path in call.aliased if path not in allowed]
        if bad:
            name = cases[call.case].name
            which = f"output {bad[0]}" if bad[0] else "its output"
            sentence = f"{which} shares memory with an input or a weight ({name})"
            return Outcome(Class.ALIASED, sentence, {"case": name, "outputs": bad})
        twice = [path for path in call.shared if path not in proof.truths.cases[call.case].shared]
        if twice:
            name = cases[call.case].name
            sentence = f"output {twice[0]} is the same memory as another output ({name})"
            return Outcome(Class.ALIASED, sentence, {"case": name, "outputs": twice})
    return None


def _reused(proof: Proof) -> Outcome | None:
    """Outputs that lie in the memory of an earlier result, which its owner still holds."""
    cases = proof.counted()
    for call in proof.ran.calls:
        if call.reused:
            name = cases[call.case].name
            which = f"output {call.reused[0]}" if call.reused[0] else "its output"
            sentence = f"a second call overwrites {which} of the first ({name})"
            return Outcome(Class.ALIASED, sentence, {"case": name, "outputs": list(call.reused)})
    return None


def _drifted(proof: Proof) -> Outcome | None:
    """Parameters and buffers that a call changes, where the reference leaves them alone."""
    if proof.subject.task.policy.buffers == "ignore":
        return None
    cases = proof.counted()
    for call in proof.ran.calls:
        if call.drifted:
            name = cases[call.case].name
            sentence = f"a call changes its own {', '.join(call.drifted[:3])} ({name})"
            return Outcome(Class.STATE_DRIFT, sentence, {"case": name, "state": list(call.drifted)})
    return None


def _own_kernels(proof: Proof) -> Outcome:
    """Whether its kernels ran; where they never did, a library call did the work."""
    ran = proof.ran.launched
    evidence: dict[str, Any] = {
        "launched": ran,
        "state_changes": list(proof.ran.state_changes),
    }
    policy = proof.subject.task.policy.library
    trace = proof.ran.trace
    if trace is not None and not trace.why:
        return _by_trace(proof, trace, evidence)
    if trace is not None:
        evidence["not_traced"] = trace.why
    if ran:
        return Outcome(None, "inputs untouched, own memory, own kernels ran", evidence)
    kernels = ", ".join(proof.outline.kernels)
    if kernels:
        sentence = f"its kernels ({kernels}) never ran: a library call did the work"
    else:
        sentence = "it has no kernel of its own: library calls do the work"
    if policy != "allow":
        return Outcome(Class.NOT_OWN_KERNEL, sentence, evidence)
    proof.warn(f"NOT_OWN_KERNEL: {sentence}")
    return Outcome(None, sentence, evidence)


def _by_trace(proof: Proof, trace: Trace, evidence: dict[str, Any]) -> Outcome:
    """By the device time of one call: how much of it the candidate's own kernels had."""
    policy, share = proof.subject.task.policy.library, trace.share
    evidence |= {
        "own_share": share,
        "own_kernels_us": trace.own,
        "library_kernels_us": trace.other,
    }
    library = ", ".join(sorted(trace.other, key=lambda name: -trace.other[name])[:3])
    if not trace.own:
        kernels = ", ".join(proof.outline.kernels)
        what = f"its kernels ({kernels}) never ran" if kernels else "it has no kernel of its own"
        sentence = f"{what}: library calls do the work ({library or 'no kernel at all'})"
    elif share < _LEAST_SHARE:
        sentence = f"its kernels have {share:.1%} of the device time: {library} do the work"
    elif isinstance(policy, float) and share < policy:
        sentence = f"its kernels have {share:.0%} of the device time, less than {policy:.0%}"
    elif policy == "forbid" and trace.other:
        sentence = f"it calls the library: {library}"
    else:
        words = f"own kernels have {share:.0%} of the device time"
        return Outcome(None, f"inputs untouched, own memory, {words}", evidence)
    if policy != "allow":
        return Outcome(Class.NOT_OWN_KERNEL, sentence, evidence)
    proof.warn(f"NOT_OWN_KERNEL: {sentence}")
    return Outcome(None, sentence, evidence)

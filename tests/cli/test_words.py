"""Events and documents as lines: each fact once, and nothing that passes for a measurement."""

from mtmc_engine.core.events import BestChanged, BestSummary, GateFinished, VerdictReached
from mtmc_engine.core.measurement import Measurement, Ratio
from mtmc_engine.core.verdict import Class, Gate, GateResult, Verdict
from mtmc_tui.displays.words import best_text, lines_of
from mtmc_tui.documents import text_of

SCOPE = "values 25/25 on a shrunk twin, not above 524288 elements"
ESTIMATED = f"{SCOPE}; its time is estimated"
ONE = Ratio(1.4, 1.4, 1.4)
GATES = (
    GateResult(Gate.VALUES, True, 1.5, SCOPE),
    GateResult(Gate.TIMING, True, 0.0, ESTIMATED, {"timing": "estimated, no GPU here"}),
)


def lines(*events):
    return [line for event in events for line, _ in lines_of(event)]


def verdict(name=Class.UNTIMED, reason=ESTIMATED):
    estimate = Measurement("estimated", 182.8, {"previous": ONE}, 56.0, "model")
    return Verdict(name, reason, GATES, (), estimate)


def test_what_the_values_were_proven_on_is_said_once():
    said = lines(*(GateFinished("n1", gate) for gate in GATES), VerdictReached("n1", verdict()))
    assert said == [
        f"  values ok, 1.5 s: {SCOPE}",
        "  timing: estimated, no GPU here",
        "  UNTIMED, 182.8 us estimated, 1.40x against previous",
    ]


def test_a_reason_of_its_own_is_kept():
    (line,) = lines(VerdictReached("n1", verdict(reason=f"{SCOPE}; no GPU here to time it")))
    assert line.endswith(": no GPU here to time it")
    (line,) = lines(VerdictReached("n1", verdict(Class.NUMERIC, "row 3 is 0.0")))
    assert line.endswith("NUMERIC, 182.8 us estimated, 1.40x against previous: row 3 is 0.0")


def report(accepted=True, warnings=()):
    return {
        "verdict": "UNTIMED" if accepted else "NOT_OWN_KERNEL",
        "accepted": accepted,
        "exit_code": 0 if accepted else 1,
        "reason": ESTIMATED,
        "gates": [
            {"gate": "timing", "passed": True, "seconds": 0.0, "sentence": ESTIMATED,
             "evidence": {"timing": "estimated, no GPU here"}},
        ],
        "measurement": None,
        "warnings": list(warnings),
        "notes": [],
    }  # fmt: skip


def test_an_accepted_candidate_without_a_kernel_of_its_own_says_so_first():
    for why in (
        "it has no kernel of its own: library calls do the work",
        "its kernels (f) never ran: a library call did the work",
    ):
        head = text_of("check", report(warnings=[f"NOT_OWN_KERNEL: {why}"])).splitlines()[0]
        assert head == f"accepted, but no kernel of its own ran: UNTIMED, {ESTIMATED}"
    few = "its kernels have 0.4% of the device time: gemm do the work"
    head = text_of("check", report(warnings=[f"NOT_OWN_KERNEL: {few}"])).splitlines()[0]
    assert head.startswith(f"accepted, but {few}: UNTIMED")


def test_other_headlines_stay_short():
    assert text_of("check", report()).splitlines()[0] == f"accepted: UNTIMED, {ESTIMATED}"
    rejected = text_of("check", report(False, ["NOT_OWN_KERNEL: it has no kernel of its own"]))
    assert rejected.startswith("rejected: NOT_OWN_KERNEL")
    assert "  timing    estimated, no GPU here" in rejected.splitlines()


def test_a_best_program_says_what_its_time_is():
    assert lines(BestChanged("n1", 2.0, 50.0, "replayed")) == [
        "best so far n1: 2.00x the original, 50.0 us replayed"
    ]
    assert lines(BestChanged("n1", None, None, None)) == ["best so far n1: kept by hand, not timed"]


def test_an_original_that_is_the_answer_says_why():
    untimed = BestSummary("n0", True, None, None, None, reason="2 steps were not timed.")
    assert best_text(untimed) == "the answer is the original. 2 steps were not timed."

"""The timing gate on recorded samples: the true statistics, no device."""

import random

import msgspec
import pytest

from mtmc_engine.core.graph import Graph, GraphInput, Node, TensorSpec
from mtmc_engine.core.task import InputSet, Policy, Task
from mtmc_engine.core.verdict import Class
from mtmc_engine.proof.gates.proof import Proof
from mtmc_engine.proof.gates.timing import time_it
from mtmc_engine.proof.subject import Subject
from mtmc_engine.proof.timing.replay import ReplayTimer
from mtmc_engine.proof.timing.timer import (
    CANDIDATE,
    COMPILED,
    COPY,
    EAGER,
    Rechecked,
    Sampled,
    Timed,
)
from mtmc_engine.proof.wire import CandidateCode
from mtmc_engine.system.devices import card

ROUNDS, SAMPLES = 40, 5
SPEC = TensorSpec((4096, 8192), "float32", ("4096", "8192"))
# 268 MB over 4800 GB/s, of which the cache may hold 60 MB.
FLOOR_US = 56.0


def task():
    graph = Graph(
        inputs=(GraphInput("x", "input", "x", SPEC),),
        nodes=(Node("tanh", "aten.tanh.default", ("%x",), {}, (SPEC,)),),
        outputs=["%tanh"],
    )
    device = msgspec.structs.replace(card("sm_90"), present=True)
    sets = (InputSet("4096x8192", (SPEC,)),)
    shape = ("/none/tanh.py", "0" * 64, "tanh", "tanh", "module", "Model")
    return Task(*shape, Policy(), device, sets, graph, ("x",))


def recorded(candidate_us=80.0, eager_us=120.0, **changes):
    """Samples with noise of 2 %, a drift of 5 % and a burst now and then."""
    source = random.Random(7)
    found = {EAGER: [], COPY: [], CANDIDATE: [], COMPILED: []}
    for number in range(ROUNDS):
        drift = 1 + 0.05 * number / ROUNDS
        for name, rounds in found.items():
            base = candidate_us if name == CANDIDATE else eager_us
            rounds.append(
                [
                    base
                    * drift
                    * (1 + abs(source.gauss(0, 0.02)))
                    * (2.0 if source.random() < 0.03 else 1.0)
                    for _ in range(SAMPLES)
                ]
            )
    names = tuple(found)
    given = {
        "call_us": dict.fromkeys(names, 1.1 * eager_us),
        "enqueue_us": dict.fromkeys(names, 20.0),
        "wall_us": {name: candidate_us if name == CANDIDATE else eager_us for name in names},
        "hidden_us": dict.fromkeys(names, 8.0),
    }
    timed = {key: changes.pop(key) for key in ("failed", "rechecked", "tokens") if key in changes}
    sampled = Sampled(found, method="recorded", **(given | changes))
    return Timed((sampled,), **timed)


async def verdict(tmp_path, recording):
    subject = Subject(task=task(), source="x = 1\n", name="n1", folder=str(tmp_path))
    code = CandidateCode(str(tmp_path / "n1.py"), "n1")
    proof = Proof(subject, None, lambda progress: None, code)
    return proof, await time_it(proof, ReplayTimer(recording))


async def test_a_faster_one_is_faster(tmp_path):
    proof, outcome = await verdict(tmp_path, recorded())
    assert outcome.verdict is None
    assert proof.speed is Class.FASTER
    assert proof.measurement.against["eager"].value == pytest.approx(1.5, rel=0.03)
    assert proof.measurement.kind == "measured"


@pytest.mark.case(27)
async def test_a_copy_is_not(tmp_path):
    proof, _ = await verdict(tmp_path, recorded(candidate_us=120.0))
    assert proof.speed in (Class.SAME, Class.AMBIGUOUS)


async def suspicious(tmp_path, words, **changes):
    proof, outcome = await verdict(tmp_path, recorded(**changes))
    assert outcome.verdict is Class.SUSPICIOUS
    assert words in outcome.sentence
    assert proof.measurement is None


@pytest.mark.case(18)
async def test_below_the_floor_is_suspicious(tmp_path):
    await suspicious(tmp_path, "cannot have done the work", candidate_us=0.5 * FLOOR_US)


@pytest.mark.case(31)
async def test_clocks_that_disagree_are_suspicious(tmp_path):
    names = (EAGER, COPY, CANDIDATE, COMPILED)
    wall = dict.fromkeys(names, 120.0) | {CANDIDATE: 400.0}
    await suspicious(tmp_path, "the clocks disagree", wall_us=wall)


@pytest.mark.case(5)
async def test_work_after_the_last_event_is_suspicious(tmp_path):
    names = (EAGER, COPY, CANDIDATE, COMPILED)
    tail = dict.fromkeys(names, 8.0) | {CANDIDATE: 90.0}
    await suspicious(tmp_path, "after the call's last event", hidden_us=tail)


@pytest.mark.case(5)
async def test_an_output_that_changes_later_is_suspicious(tmp_path):
    await suspicious(tmp_path, "not ready in time", late=(CANDIDATE,))


@pytest.mark.case(26)
async def test_other_code_than_was_judged_is_suspicious(tmp_path):
    await suspicious(tmp_path, "is not the code that was judged", tokens={CANDIDATE: "f" * 64})


@pytest.mark.case(25)
async def test_raising_while_timed_is_runtime_without_a_number(tmp_path):
    recording = msgspec.structs.replace(recorded(failed="ValueError: not now"), sets=())
    proof, outcome = await verdict(tmp_path, recording)
    assert outcome.verdict is Class.RUNTIME
    assert "ValueError: not now" in outcome.sentence
    assert proof.measurement is None


@pytest.mark.case(25)
async def test_a_time_out_while_timed(tmp_path):
    recording = msgspec.structs.replace(recorded(failed="TIMEOUT: it hangs"), sets=())
    _, outcome = await verdict(tmp_path, recording)
    assert outcome.verdict is Class.TIMEOUT


@pytest.mark.case(19)
async def test_wrong_outputs_of_timed_calls_leave_no_number(tmp_path):
    wrong = Rechecked(4, "NUMERIC", "all outputs of timed calls are wrong")
    proof, outcome = await verdict(tmp_path, recorded(rechecked=wrong))
    assert outcome.verdict is Class.NUMERIC
    assert proof.measurement is None


async def test_a_missing_contestant_is_told(tmp_path):
    recording = msgspec.structs.replace(recorded(), missing={COMPILED: "no compiler"})
    proof, _ = await verdict(tmp_path, recording)
    assert proof.speed is Class.FASTER
    assert any("no compiler" in warning for warning in proof.warnings)

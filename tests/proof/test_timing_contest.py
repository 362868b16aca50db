"""Contests of real processes, timed on the CPU: what is timed is what was judged."""

import hashlib
import json
import socket

import msgspec
import pytest
from timing_court import HEAD, HONEST, Contests

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.proof.timing import facts
from mtmc_engine.proof.timing.measure import judge_times
from mtmc_engine.proof.timing.timer import CANDIDATE, COPY, EAGER, Entrant
from mtmc_engine.system.jobs import Limits

pytestmark = pytest.mark.timeout(120)

# A forward pass with what a cheat does beside; `calls` counts the calls of this process.
CHEAT = """
import os, threading, time
from operator_file import Model

calls = 0
kept = []

class ModelNew(Model):
    @classmethod
    def from_reference(cls, model):
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, x):
        global calls
        calls += 1
        {body}
"""
STALE = """
        if calls % 15 == 1:
            kept[:] = [torch.tanh(x) * self.scale]
        return kept[0]
"""
DRIFTING = """
        return torch.tanh(x) * self.scale * (1 + 0.001 * calls)
"""
RAISES_LATER = """
        if calls > 40:
            raise ValueError("not any more")
        return torch.tanh(x) * self.scale
"""
LEAVES_LATER = """
        if calls > 40:
            os._exit(0)
        return torch.tanh(x) * self.scale
"""
NEVER_RETURNS = """
        if calls > 1:
            time.sleep(1000)
        return torch.tanh(x) * self.scale
"""
LATE = """
        out = torch.empty_like(x)
        def work():
            time.sleep(0.001)
            torch.mul(torch.tanh(x), self.scale, out=out)
        threading.Thread(target=work).start()
        return out
"""
SEARCHES = """
        import pathlib
        found = [str(p) for p in pathlib.Path("{truths}").rglob("*")]
        stands = [p for p in pathlib.Path("{places}").rglob("s") if p.is_socket()]
        if found or len(stands) > 1:
            raise ValueError(f"it sees {{found}} and {{stands}}")
        return torch.tanh(x) * self.scale
"""
PATCHED = """
        return torch.tanh(x) * self.scale

now = time.perf_counter
time.perf_counter = lambda: 0.0
time.monotonic = lambda: 0.0
torch.cuda.synchronize = lambda *a, **k: None
torch.cuda.Event.elapsed_time = lambda *a, **k: 1e-6
torch.allclose = lambda *a, **k: True
torch.equal = lambda *a, **k: True
"""

# Places of the largest of many equal elements: the candidate takes the last, the library another.
PLACES = """
class Model(nn.Module):
    def forward(self, x):
        values, places = x.max(dim=1)
        return values, places

def get_inputs():
    return [torch.randint(0, 9, (64, 256)).float()]

def get_init_inputs():
    return []
"""
LAST_PLACES = """
class ModelNew(nn.Module):
    def forward(self, x):
        values = x.amax(1)
        count = torch.arange(x.shape[1])
        return values, torch.where(x == values[:, None], count, -1).amax(1){change}
"""


def cheat(body):
    return CHEAT.format(body=body.strip())


@pytest.fixture(scope="module")
def contests(tmp_path_factory):
    contests = Contests(tmp_path_factory.mktemp("contests"))
    yield contests
    contests.close()


def judged(timed):
    return judge_times(timed, EAGER, 0.0, 0.0)


def test_an_honest_program_is_timed(contests):
    timed = contests.time(HONEST)
    assert not timed.failed, timed.failed
    assert timed.missing == {}
    (sampled,) = timed.sets
    assert set(sampled.device_us) == {CANDIDATE, EAGER, COPY}
    assert len({len(rounds) for rounds in sampled.device_us.values()}) == 1
    assert timed.rechecked.calls >= 1
    assert timed.rechecked.verdict == "", timed.rechecked.sentence
    found = judged(timed)
    assert found.verdict in ("FASTER", "SAME", "AMBIGUOUS", "SLOWER"), found.sentence
    assert timed.tokens[CANDIDATE] == hashlib.sha256((HEAD + HONEST).encode()).hexdigest()
    wall, events = found.evidence["wall_us"], found.measurement.time_us
    assert abs(wall - events) < 0.5 * events + 20


@pytest.mark.case(31)
def test_timers_that_a_candidate_replaces_are_not_used(contests):
    timed = contests.time(cheat(PATCHED))
    assert not timed.failed, timed.failed
    found = judged(timed)
    assert found.verdict in ("SAME", "AMBIGUOUS", "SLOWER", "FASTER"), found.sentence
    assert found.measurement.time_us > 1.0


@pytest.mark.case(19)
def test_an_output_of_an_earlier_call_is_numeric(contests):
    found = judged(contests.time(cheat(STALE)))
    assert found.verdict == "NUMERIC"
    assert "earlier result" in found.sentence


@pytest.mark.case(19)
def test_a_state_that_drifts_is_found(contests):
    found = judged(contests.time(cheat(DRIFTING)))
    assert found.verdict == "STATE_DRIFT", found.sentence


@pytest.mark.case(25)
def test_raising_while_timed_gives_no_number(contests):
    timed = contests.time(cheat(RAISES_LATER))
    assert timed.failed == "ValueError: not any more"
    assert timed.sets == ()


@pytest.mark.case(25)
def test_leaving_while_timed_is_told(contests):
    timed = contests.time(cheat(LEAVES_LATER))
    assert "ended its own process" in timed.failed
    again = contests.time(HONEST)
    assert not again.failed, again.failed


@pytest.mark.case(25)
def test_never_returning_is_a_timeout(contests):
    timed = contests.time(cheat(NEVER_RETURNS), compile_seconds=1.0)
    assert timed.failed.startswith(("TooSlow", "TIMEOUT")), timed.failed
    assert not contests.time(HONEST).failed


@pytest.mark.case(5)
def test_an_output_that_is_written_later_is_suspicious(contests):
    found = judged(contests.time(cheat(LATE)))
    assert found.verdict in ("SUSPICIOUS", "NUMERIC", "STATE_DRIFT"), found.sentence


def nonces(contests):
    return {stand.place.nonce for stand in contests.timer.pool._idle.values()}


def test_processes_stay_warm_and_a_fresh_contest_gets_new_ones(contests):
    contests.time(HONEST)
    first = nonces(contests)
    contests.time(HONEST)
    assert nonces(contests) == first
    contests.time(HONEST, fresh=True)
    assert len(nonces(contests) - first) == 2  # the reference and its copy; no candidate stays
    contests.loop.run_until_complete(contests.timer.pool.close())
    assert contests.timer.pool.size == 0


def test_a_stranger_gets_no_answer(contests):
    contests.time(HONEST)
    place = next(iter(contests.timer.pool._idle.values())).place
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.settimeout(10)
        stranger.connect(place.socket)
        stranger.sendall(b"not the nonce\n" + json.dumps({"do": "rest"}).encode() + b"\n")
        assert stranger.recv(100) == b""


def test_a_timed_program_sees_neither_truths_nor_the_other_stands(contests):
    """Also those that are put there after its process has started."""
    truths, places = contests.folder / "truths", contests.timer.pool._place
    (truths / "earlier").write_text("the truth")
    code = cheat(SEARCHES.format(truths=str(truths), places=str(places)))
    timed = contests.time(code)
    assert not timed.failed, timed.failed
    (truths / "later").write_text("the truth")
    again = contests.time(code)  # by the process that has started
    assert not again.failed, again.failed
    blind = contests.time(code, hidden=())
    assert "sees" in blind.failed


def test_ties_may_fall_either_way(tmp_path):
    contests = Contests(tmp_path, PLACES)
    try:
        right = contests.time(LAST_PLACES.format(change=""), copy=False).rechecked
        wrong = contests.time(LAST_PLACES.format(change=" - 1"), copy=False).rechecked
    finally:
        contests.close()
    assert (right.verdict, right.sentence) == ("", "")
    assert right.calls >= 1
    assert wrong.verdict == "STATE_DRIFT"
    assert "output 1" in wrong.sentence


def test_several_shapes_are_compared_each_with_its_own(contests):
    sets = tuple((TensorSpec((rows, 256), "float32"),) for rows in (64, 1, 33))
    timed = contests.time(HONEST, sets=sets)
    assert not timed.failed, timed.failed
    assert len(timed.sets) == 3
    assert (timed.rechecked.verdict, timed.rechecked.sentence) == ("", "")
    assert timed.rechecked.calls >= 3
    found = judged(contests.time(cheat(STALE), sets=sets))
    assert found.verdict == "NUMERIC", found.sentence


def test_every_process_started_early_is_known(contests, monkeypatch):
    pool, started = contests.timer.pool, []
    make = pool._start
    monkeypatch.setattr(pool, "_start", lambda *given: started.append(make(*given)) or started[-1])
    contest = contests.contest(HONEST + "# twice the same\n")
    candidate = contest.entrants[0]
    twice = (*contest.entrants, Entrant("previous", "source", candidate.code))

    async def start():
        pool.start_early(msgspec.structs.replace(contest, entrants=twice), Limits())
        return pool.size

    contests.loop.run_until_complete(start())
    assert any(stand.place.name == CANDIDATE for stand in started)
    assert {id(one) for one in started} <= {id(one) for one in pool._idle.values()}


def test_a_process_that_is_just_ending_is_no_other_process(monkeypatch):
    counts = iter([4, 4, 3])
    monkeypatch.setattr(facts, "_processes", lambda: next(counts))
    monkeypatch.setattr(facts, "sleep", lambda seconds: None)
    assert facts._others(3) == 0
    monkeypatch.setattr(facts, "_processes", lambda: 4)
    assert facts._others(3) == 1

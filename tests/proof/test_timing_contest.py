"""Contests of real processes, timed on the CPU: what is timed is what was judged."""

import hashlib
import json
import socket

import pytest
from timing_court import HEAD, HONEST, Contests

from mtmc_engine.proof.timing.measure import judge_times
from mtmc_engine.proof.timing.timer import CANDIDATE, COPY, EAGER

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


def test_timers_that_a_candidate_replaces_are_not_used(contests):
    timed = contests.time(cheat(PATCHED))
    assert not timed.failed, timed.failed
    found = judged(timed)
    assert found.verdict in ("SAME", "AMBIGUOUS", "SLOWER", "FASTER"), found.sentence
    assert found.measurement.time_us > 1.0


def test_an_output_of_an_earlier_call_is_numeric(contests):
    found = judged(contests.time(cheat(STALE)))
    assert found.verdict == "NUMERIC"
    assert "earlier result" in found.sentence


def test_a_state_that_drifts_is_found(contests):
    found = judged(contests.time(cheat(DRIFTING)))
    assert found.verdict == "STATE_DRIFT", found.sentence


def test_raising_while_timed_gives_no_number(contests):
    timed = contests.time(cheat(RAISES_LATER))
    assert timed.failed == "ValueError: not any more"
    assert timed.sets == ()


def test_leaving_while_timed_is_told(contests):
    timed = contests.time(cheat(LEAVES_LATER))
    assert "ended its own process" in timed.failed
    again = contests.time(HONEST)
    assert not again.failed, again.failed


def test_never_returning_is_a_timeout(contests):
    timed = contests.time(cheat(NEVER_RETURNS), compile_seconds=1.0)
    assert timed.failed.startswith(("TooSlow", "TIMEOUT")), timed.failed
    assert not contests.time(HONEST).failed


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

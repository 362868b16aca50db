"""All gates with timing, on a machine without a GPU: the CPU plays a card of endless bandwidth."""

import asyncio

import msgspec
import pytest
from timing_court import HEAD, HONEST, REFERENCE

from mtmc_engine.capture.client import task_of
from mtmc_engine.proof.confirm import confirm
from mtmc_engine.proof.prove import Subject, prove
from mtmc_engine.proof.timing.pool import pool_of
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Workshop

PROVEN = ("FASTER", "SAME", "AMBIGUOUS", "SLOWER")


class Session:
    def __init__(self, folder):
        self.folder, self.workshop = folder, Workshop()
        self.loop = asyncio.new_event_loop()
        file = folder / "operator_file.py"
        file.write_text(HEAD + REFERENCE)
        job = {"file": str(file), "seed": 0, "target_card": msgspec.to_builtins(card("sm_90"))}
        task = task_of(
            self.run(self.workshop.device.run("mtmc_engine.capture.worker:open_task", job))
        )
        device = msgspec.structs.replace(task.device, present=True, bandwidth_gbs=1e9)
        self.task = msgspec.structs.replace(task, device=device)

    def run(self, work):
        return self.loop.run_until_complete(work)

    def subject(self, source, **options):
        given = {"against_compiled": False, "beside": str(self.folder)} | options
        folder = str(self.folder / "scratch")
        return Subject(task=self.task, source=source, name="n1", folder=folder, **given)

    def prove(self, source, **options):
        subject = self.subject(source, **options)
        return self.run(prove(subject, self.workshop, lambda progress: None))

    @property
    def warm(self):
        return {stand.place.nonce for stand in pool_of(self.workshop)._idle.values()}

    def close(self):
        self.run(pool_of(self.workshop).close())
        self.run(self.workshop.close())
        self.loop.close()


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setattr(Subject, "device", property(lambda subject: "cpu"))
    session = Session(tmp_path_factory.mktemp("session"))
    yield session
    session.close()
    patch.undo()


def test_an_honest_step_is_judged_and_timed(session):
    verdict = session.prove(HEAD + HONEST)
    assert verdict.verdict in PROVEN, verdict.reason
    assert verdict.measurement.kind == "measured"
    assert verdict.gates[-1].evidence["outputs_rechecked"] >= 1


def test_the_next_step_finds_the_last_one_warm(session):
    first = HEAD + HONEST
    session.prove(first)
    before = session.warm
    verdict = session.prove(first + "# the next step\n", baselines={"previous": first})
    assert verdict.verdict in PROVEN, verdict.reason
    assert "previous" in verdict.measurement.against
    assert before <= session.warm


def test_a_wrong_step_leaves_no_process(session):
    before = session.warm
    wrong = HEAD + HONEST.replace("torch.tanh(x)", "torch.tanh(x * 1.01)")
    assert session.prove(wrong).verdict == "NUMERIC"
    assert session.warm <= before


def test_a_winner_is_measured_in_new_processes(session):
    before = session.warm
    measurement = session.run(confirm(session.subject(HEAD + HONEST), session.workshop))
    assert measurement.kind == "measured"
    assert not before <= session.warm

"""The GPU's lock between processes: alone means alone, and waiting for it ends."""

import multiprocessing
import time

import pytest

from mtmc_engine.proof.timing.lock import alone, among_others, gate_of

FORK = multiprocessing.get_context("fork")
LONG_S = 20


def shares(file, until, inside):
    """Take the card among others again and again, overlapping with the other sharers."""
    while time.monotonic() < until:
        with among_others(file):
            with inside.get_lock():
                inside.value += 1
            time.sleep(0.05)
            with inside.get_lock():
                inside.value -= 1


def wants_alone(file, inside, seen, waits):
    began = time.monotonic()
    with alone(file):
        waits.put(time.monotonic() - began)
        seen.put(inside.value)
        time.sleep(0.1)
        seen.put(inside.value)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    return str(path)


@pytest.mark.parametrize("wanting", [1, 3])
def test_who_wants_it_alone_is_served_while_others_keep_coming(file, wanting):
    inside = FORK.Value("i", 0)
    seen, waits = FORK.Queue(), FORK.Queue()
    until = time.monotonic() + LONG_S
    sharers = [FORK.Process(target=shares, args=(file, until, inside)) for _ in range(6)]
    for process in sharers:
        process.start()
    while inside.value < 2:
        time.sleep(0.01)
    alone_ones = [
        FORK.Process(target=wants_alone, args=(file, inside, seen, waits)) for _ in range(wanting)
    ]
    for process in alone_ones:
        process.start()
    try:
        waited = [waits.get(timeout=LONG_S) for _ in alone_ones]
        assert [seen.get(timeout=LONG_S) for _ in range(2 * wanting)] == [0] * (2 * wanting)
        assert max(waited) < LONG_S / 2  # without the gate: as long as the sharers go on
        assert all(process.is_alive() for process in sharers)
    finally:
        for process in [*sharers, *alone_ones]:
            process.kill()
            process.join()


def test_sharers_share(file):
    with among_others(file), among_others(file):
        pass


def test_nothing_is_locked_without_a_file():
    with alone(""), alone(""):
        pass


def test_a_killed_holder_leaves_it_free(file):
    holding = FORK.Event()

    def hold():
        with alone(file):
            holding.set()
            time.sleep(60)

    process = FORK.Process(target=hold)
    process.start()
    assert holding.wait(20)
    process.kill()
    process.join()
    with alone(file):
        pass
    assert gate_of(file).startswith(file)

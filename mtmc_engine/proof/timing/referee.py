"""The referee of a contest: a process without any program, which gives turns and takes the time.

Method (A. Georges et al., Statistically rigorous Java performance evaluation, 2007, for rounds and
intervals; the cache flush and one pair of events per call as in triton.testing.do_bench): every
program has a process of its own and is warmed up there until compilation and tuning are over;
then rounds of turns A B A B, in reversed order every other round, under the device's lock. In its
turn a process enqueues new contents, a cache flush and the call between two events, several times,
and synchronises once. Programs under SHORT_US are sampled as replays of a captured graph over
many inputs. Rounds without calls, timed by this process's clock, tell what the calls themselves
cost whatever the events say.
"""

from __future__ import annotations

import json
import random
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any

import msgspec

from mtmc_engine.proof.timing.facts import Watch, device_facts
from mtmc_engine.proof.timing.lock import alone
from mtmc_engine.proof.timing.timer import CANDIDATE, EAGER, Contest, Rechecked, Sampled, Timed

SHORT_US = 20.0
LEAST_ROUNDS, MOST_ROUNDS = 12, 60
_SAMPLES = 5
# A program this slow gets fewer samples in a round, so that the rounds fit into the time.
_SLOW_US = ((2000.0, 1), (500.0, 3))
_CHECKED_TURNS = 2
# Turns with and without calls by the own clock: more of them only where it seems to disagree,
# since something else on this machine may have come between.
_CLOCK_ROUNDS, _MOST_CLOCK_ROUNDS, _CLOCK_S = 4, 40, 1.5
_TURN_S = 60.0

Tell = Callable[[int, int, str], None]


class Place(msgspec.Struct, frozen=True):
    """Where a contestant's process listens. token: of the source that it runs."""

    name: str
    socket: str
    nonce: str
    token: str = ""


class Request(msgspec.Struct, frozen=True):
    """ours: processes of this session that hold the device, this one not counted."""

    contest: Contest
    places: tuple[Place, ...]
    missing: dict[str, str]
    ours: int = 0


class Left(Exception):
    """A contestant failed; the message is its own."""


def hold(arguments: dict[str, Any], report: Callable[[Any], None]) -> Timed:
    """Job: arguments as in Request; reports {"done", "total", "doing"}."""
    request = msgspec.convert(arguments, Request)

    def tell(done: int, total: int, doing: str) -> None:
        report({"done": done, "total": total, "doing": doing})

    contest = _Contest(request, tell)
    try:
        return contest.held()
    except Left as reason:
        return Timed((), contest.missing, str(reason))
    finally:
        for line in contest.lines.values():
            line.close()


class _Line:
    """A connection to one contestant."""

    def __init__(self, place: Place) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(_TURN_S)
        self.socket.connect(place.socket)
        self.channel = self.socket.makefile("rwb")
        self.channel.write(place.nonce.encode() + b"\n")
        self.channel.flush()

    def send(self, **command: Any) -> None:
        try:
            self.channel.write(json.dumps(command).encode() + b"\n")
            self.channel.flush()
        except OSError as error:
            raise Left("its process ended") from error

    def answer(self, patience_s: float = _TURN_S) -> dict[str, Any]:
        """Raises Left where the program failed, its process ended or it takes too long."""
        self.socket.settimeout(patience_s)
        try:
            line = self.channel.readline(1 << 24)
        except TimeoutError as error:
            raise Left(f"TIMEOUT: it did not finish within {patience_s:.0f} s") from error
        except OSError as error:
            raise Left("its process ended") from error
        if not line:
            raise Left("its process ended")
        found: dict[str, Any] = json.loads(line)
        if "failed" in found:
            raise Left(str(found["failed"]))
        return found

    def ask(self, **command: Any) -> dict[str, Any]:
        self.send(**command)
        return self.answer()

    def close(self) -> None:
        self.channel.close()
        self.socket.close()


@dataclass
class _Looks:
    """What was seen of each contestant before its samples."""

    call_us: dict[str, float] = field(default_factory=dict)
    enqueue_us: dict[str, float] = field(default_factory=dict)
    hidden_us: dict[str, float] = field(default_factory=dict)
    unexplained_us: dict[str, float] = field(default_factory=dict)
    quick_us: dict[str, float] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)


class _Contest:
    """One contest, from the first warm-up to the comparison of outputs."""

    def __init__(self, request: Request, tell: Tell) -> None:
        self.request, self.contest, self.tell = request, request.contest, tell
        self.missing = dict(request.missing)
        self.lines: dict[str, _Line] = {}
        self.tokens = {place.name: place.token for place in request.places}
        self.watch = Watch()
        self.gpu_s = 0.0
        for place in request.places:
            with _leaving(self, place.name):
                self.lines[place.name] = _Line(place)

    def held(self) -> Timed:
        present = self.contest.build.device.startswith("cuda")
        before: dict[str, Any] = {}
        sets, kept = [], []
        for number in range(len(self.contest.sets)):
            self._prepare(number)
            if present and not before:
                before = device_facts(self.request.ours)
            self._prepared()
            with alone(self.contest.lock):
                began = monotonic()
                sets.append(self._sampled(number))
                self.gpu_s += monotonic() - began
            kept += self._dumped(number)
        rechecked = self._rechecked(kept)
        share = max((one.throttled / LEAST_ROUNDS for one in sets), default=0.0)
        facts = dict(before)
        if before:
            facts["after"] = self.watch.facts()
            facts["throttled"] = bool(before.get("throttled")) or share > 0.25
        return Timed(
            tuple(sets),
            self.missing,
            device=facts,
            tokens=self.tokens,
            rechecked=rechecked,
            gpu_s=self.gpu_s,
        )

    def leave(self, name: str, why: str) -> None:
        """A contestant that fails is left out. Raises Left where that is the candidate."""
        line = self.lines.pop(name, None)
        if line is not None:
            line.close()
        if name == CANDIDATE:
            raise Left(why)
        self.missing[name] = why[:300]

    def _prepare(self, number: int) -> None:
        """All warm up at the same time."""
        self.tell(0, 1, "warming up")
        for name in list(self.lines):
            with _leaving(self, name):
                self.lines[name].send(do="prepare", set=number)

    def _prepared(self) -> None:
        for name in sorted(self.lines, key=lambda name: name != CANDIDATE):
            with _leaving(self, name):
                self.lines[name].answer(3 * self.contest.compile_seconds)

    def _sampled(self, number: int) -> Sampled:
        looks = _Looks()
        for name in list(self.lines):
            with _leaving(self, name):
                _note(looks, name, self.lines[name].ask(do="look", secret=secrets.token_hex(8)))
        method, slots = self._method(looks)
        count = _samples_for(max(looks.quick_us.values()) * max(1, slots))
        wall = self._by_own_clock(count, looks, slots)
        rounds, throttled = self._rounds(count, number)
        return Sampled(
            rounds,
            looks.call_us,
            looks.enqueue_us,
            method,
            wall,
            looks.hidden_us,
            looks.unexplained_us,
            tuple(looks.late),
            throttled,
        )

    def _method(self, looks: _Looks) -> tuple[str, int]:
        """How device time is taken, the same way for all, in words; slots of a graph or 0."""
        method = "device time: CUDA events, one pair per call, cold L2, new contents for each call"
        if not self.contest.build.device.startswith("cuda"):
            method = "time on the CPU: the host's clock, new contents for each call"
        elif min(looks.quick_us.values()) < SHORT_US:
            slots, why = self._captured()
            if not why:
                return (
                    f"device time: replays of a CUDA graph of {slots} calls, "
                    "new contents for each replay"
                ), slots
            method += f" (not captured as a graph: {why[:100]})"
        return f"{method}; each program in its own process", 0

    def _captured(self) -> tuple[int, str]:
        """Calls in each graph; why not, where one of them cannot be captured."""
        slots, why = 0, ""
        for name, line in self.lines.items():
            try:
                slots = int(line.ask(do="capture")["slots"])
            except Left as reason:
                why = f"{name}: {reason}"
                break
        if why:
            for line in self.lines.values():
                line.ask(do="rest")
        return slots, why

    def _by_own_clock(self, count: int, looks: _Looks, slots: int) -> dict[str, float]:
        """Microseconds of a call by this process's clock: turns with calls less idle ones."""
        found: dict[str, float] = {}
        for name in list(self.lines):
            with _leaving(self, name):
                quick = looks.quick_us[name]
                explained = quick, max(quick, 0.0 if slots else looks.enqueue_us[name])
                found[name] = _call_by_own_clock(self.lines[name], count, explained, max(1, slots))
        return found

    def _rounds(self, count: int, number: int) -> tuple[dict[str, list[list[float]]], int]:
        """Interleaved rounds until the time is spent; the order turns round every time."""
        order = list(self.lines)
        random.Random(self.contest.order_seed).shuffle(order)
        found: dict[str, list[list[float]]] = {name: [] for name in order}
        slowed: list[bool] = []
        words = _size_of(self.contest, number)
        until = monotonic() + self.contest.seconds
        chosen = {secrets.randbelow(LEAST_ROUNDS) for _ in range(_CHECKED_TURNS)}
        for turn in range(MOST_ROUNDS):
            if turn >= LEAST_ROUNDS and monotonic() > until:
                break
            for name in order if turn % 2 == 0 else reversed(order):
                if name not in self.lines:
                    continue
                keep = _two_of(count) if name == CANDIDATE and turn in chosen else []
                with _leaving(self, name):
                    secret = secrets.token_hex(8)
                    line = self.lines[name]
                    told = line.ask(do="turn", k=count, secret=secret, keep=keep)
                    found[name].append([float(us) for us in told["us"]])
            slowed.append(self.watch.slowed())
            self.tell(turn + 1, MOST_ROUNDS, f"round {turn + 1} {words}")
        rounds = {name: samples for name, samples in found.items() if name in self.lines}
        return _without_slowed(rounds, slowed)

    def _dumped(self, number: int) -> list[dict[str, Any]]:
        if not self.contest.folder or EAGER not in self.lines:
            return []
        return list(self.lines[CANDIDATE].ask(do="dump", folder=self.contest.folder)["kept"])

    def _rechecked(self, kept: list[dict[str, Any]]) -> Rechecked:
        """Compared by the reference's process, which is not the candidate's."""
        if not kept or EAGER not in self.lines:
            return Rechecked()
        self.tell(1, 1, "comparing outputs of timed calls")
        try:
            folder = self.contest.folder
            found = self.lines[EAGER].ask(do="testify", kept=kept, folder=folder)
        except Left as reason:
            self.missing["comparison of timed calls"] = str(reason)[:300]
            return Rechecked()
        return msgspec.convert(found, Rechecked)


class _leaving:
    """Leaves a contestant out that fails within; an absent socket counts as that."""

    def __init__(self, contest: _Contest, name: str) -> None:
        self.contest, self.name = contest, name

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, OSError | Left | ValueError | KeyError):
            self.contest.leave(self.name, str(error) or type(error).__name__)
            return True
        return False


def _size_of(contest: Contest, number: int) -> str:
    """An input set in words: its first tensor's shape."""
    tensors = contest.sets[number]
    return "x".join(map(str, tensors[0].shape)) if tensors else ""


def _note(looks: _Looks, name: str, told: Mapping[str, Any]) -> None:
    looks.call_us[name] = float(told["call_us"])
    looks.enqueue_us[name] = float(told["enqueue_us"])
    looks.hidden_us[name] = float(told["hidden_us"])
    looks.unexplained_us[name] = float(told["unexplained_us"])
    looks.quick_us[name] = float(told["quick_us"])
    if told["late"]:
        looks.late.append(name)


def _samples_for(slowest_us: float) -> int:
    """Samples of each program in a round."""
    return next((count for least_us, count in _SLOW_US if slowest_us > least_us), _SAMPLES)


def _two_of(count: int) -> list[int]:
    """Neighbouring samples, chosen at random: an earlier result that comes again shows in them."""
    first = secrets.randbelow(max(1, count - 1))
    return list(range(first, min(first + 2, count)))


def _call_by_own_clock(
    line: _Line, count: int, explained_us: tuple[float, float], slots: int
) -> float:
    """The shortest turn with calls less the shortest without, for one call.

    explained_us: what the device's and the host's times say, at least and at most.
    """
    least, most = explained_us
    with_calls = without = float("inf")
    until = monotonic() + _CLOCK_S
    per_call = 0.0
    for number in range(_MOST_CLOCK_ROUNDS):
        with_calls = min(with_calls, _timed_turn(line, count, False))
        without = min(without, _timed_turn(line, count, True))
        per_call = max(0.0, with_calls - without) / (count * slots)
        agrees = 0.8 * least - 5 < per_call < 1.2 * most + 10
        if number + 1 >= _CLOCK_ROUNDS and (agrees or monotonic() > until):
            break
    return per_call


def _timed_turn(line: _Line, count: int, idle: bool) -> float:
    """Microseconds that a turn takes, by this process's clock."""
    began = perf_counter()
    line.ask(do="turn", k=count, secret=secrets.token_hex(8), idle=idle)
    return (perf_counter() - began) * 1e6


def _without_slowed(
    rounds: dict[str, list[list[float]]], slowed: list[bool]
) -> tuple[dict[str, list[list[float]]], int]:
    """Rounds during which the card kept its clocks; all of them where too few are left."""
    count = sum(slowed)
    if not count or len(slowed) - count < LEAST_ROUNDS:
        return rounds, count
    return {
        name: [samples for samples, slow in zip(one, slowed, strict=True) if not slow]
        for name, one in rounds.items()
    }, count

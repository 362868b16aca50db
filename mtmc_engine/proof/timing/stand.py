"""A contestant's own process: it calls one program when the referee says so, and nothing else.

It listens on a socket for one command after another, each a JSON line, and answers each with one:

    {"do": "prepare", "set": 0}             inputs are drawn, the program is called until it is warm
    {"do": "look", "set": 0}                call time, a first device time, work after its end
    {"do": "capture"}                       a graph of calls over many inputs
    {"do": "turn", "k": 5, "secret": "…"}   k samples; "idle": everything but the calls;
                                            "keep": samples whose outputs are copied away
    {"do": "dump", "folder": "…"}           kept outputs go to files
    {"do": "testify", "folder": "…", …}     the reference's process compares them with the truth
    {"do": "rest"}                          memory that is not needed between contests is freed

The code that is timed is imported after everything that times it was bound.
"""

from __future__ import annotations

import copy
import gc
import hmac
import json
import socket
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import msgspec
import torch

from mtmc_engine.capture.call import invoke
from mtmc_engine.capture.load import Reference
from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.proof.timing.clock import Clock, Replay, clock_for, pause
from mtmc_engine.proof.timing.contents import Contents
from mtmc_engine.proof.timing.entrants import Program, build_entrant, within
from mtmc_engine.proof.timing.lock import among_others
from mtmc_engine.proof.timing.recheck import Kept, compare_kept
from mtmc_engine.proof.timing.timer import COMPILED, Entrant
from mtmc_engine.proof.wire import Build
from mtmc_engine.proof.work.build import build_reference, open_reference, randomise
from mtmc_engine.proof.work.exchange import put
from mtmc_engine.proof.work.memory import poison
from mtmc_engine.proof.work.state import GlobalState
from mtmc_engine.proof.work.tensors import leaves

_allclose, _equal = torch.allclose, torch.equal

_MOST_WARM_UP = 30
_CALLS = 8
_PROBES = 3
_LATE_S = 0.003
# The host needs so long for a sample beside the program's own launch.
_PREPARE_US = 60.0
_MOST_LEAD_US = 4000.0
_CONNECT_S = 3600.0


class Request(msgspec.Struct, frozen=True):
    """socket: path to listen on. nonce: what a referee must say first. sets: input tensors."""

    entrant: Entrant
    build: Build
    sets: tuple[tuple[TensorSpec, ...], ...]
    l2_bytes: int
    lock: str
    compile_seconds: float
    socket: str
    nonce: str


def serve(arguments: dict[str, Any], report: Callable[[Any], None]) -> dict[str, Any]:
    """Job: arguments as in Request; reports {"ready": true, "token"} when it listens.

    Returns {"failed": why} where the program cannot be built; otherwise it ends when killed.
    """
    request = msgspec.convert(arguments, Request)
    gc.disable()  # a collection in the middle of a sample would be taken for the program's time
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(request.socket)
        listener.listen(1)
        with among_others(request.lock):
            stand = _Stand(request)
        failed = stand.failed
        if failed:
            return {"failed": failed}
        report({"ready": True, "token": stand.token})
        while True:
            connection, _ = listener.accept()
            with connection:
                _attend(connection, stand, request.nonce)
            stand.rest()


def _attend(connection: socket.socket, stand: _Stand, nonce: str) -> None:
    """Serves one referee until it hangs up; anybody else is sent away."""
    with connection.makefile("rwb") as channel:
        hello = channel.readline(4096)
        if not hmac.compare_digest(hello.strip(), nonce.encode()):
            return
        while line := channel.readline(1 << 20):
            channel.write(json.dumps(stand.answer(json.loads(line))).encode() + b"\n")
            channel.flush()


class _Stand:
    """One program with its inputs and clock."""

    def __init__(self, request: Request) -> None:
        self.request = request
        device = request.build.device
        self.reference: Reference = open_reference(request.build)
        self.model = build_reference(self.reference, request.build)
        if request.build.randomise:
            randomise(self.model, request.build.seed)
        is_reference = request.entrant.kind == "eager"
        self.pristine = copy.deepcopy(self.model) if is_reference else None
        self.clock: Clock = clock_for(device, request.l2_bytes)
        self.program: Program | None = None
        self.failed, self.token = "", ""
        self.switches = GlobalState()
        self.contents: dict[int, Contents] = {}
        self.current = 0
        self.slots: list[list[Any]] = []
        self.replay: Replay | None = None
        self.results: list[Any] = []
        self.enqueue_us = 0.0
        self.kept: list[Kept] = []
        self.form: list[tuple[tuple[int, ...], torch.dtype]] = []
        try:
            self.program, self.token = build_entrant(
                request.entrant, request.build, self.reference, self.model
            )
        except BaseException as error:
            self.failed = _said(error)
        self.switches.restore()

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carries one command out; {"failed": why} where the program raises."""
        deeds: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "prepare": self._prepare,
            "look": self._look,
            "capture": self._capture,
            "turn": self._turn,
            "dump": self._dump,
            "testify": self._testify,
            "rest": lambda _: self.rest(),
        }
        try:
            return deeds[command["do"]](command)
        except BaseException as error:  # SystemExit too: it is the candidate's
            return {"failed": _said(error)}

    def rest(self) -> dict[str, Any]:
        """Lets go of what only a contest needs."""
        self.kept.clear()
        self.slots, self.results, self.replay = [], [], None
        gc.collect()
        return {}

    def _called(self, arguments: list[Any]) -> Any:
        assert self.program is not None
        with torch.no_grad():
            return invoke(self.program, arguments, self.request.build.keywords)

    def _prepare(self, command: dict[str, Any]) -> dict[str, Any]:
        """Calls until three in a row take about as long as the shortest: tuning is then over."""
        request, number = self.request, int(command["set"])
        self.current = number
        with among_others(request.lock):
            if number not in self.contents:
                seed = request.build.seed + 100 * number
                specs, device = request.sets[number], request.build.device
                self.contents[number] = Contents(self.reference, specs, device, seed)
            is_slow = request.entrant.kind != COMPILED
            with within(request.compile_seconds * (2 if is_slow else 1)):
                self._warm_up()
        self.switches.restore()
        return {}

    def _warm_up(self) -> None:
        contents, clock = self.contents[self.current], self.clock
        shortest, steady, value = float("inf"), 0, None
        for number in range(_MOST_WARM_UP):
            contents.refresh(f"warm-up {number}")
            clock.synchronise()
            began = perf_counter()
            value = self._called(contents.arguments())
            clock.synchronise()
            took = perf_counter() - began
            steady = steady + 1 if took < 1.3 * shortest else 0
            shortest = min(shortest, took)
            if steady >= 3:
                break
        tensors = [leaf for _, leaf in leaves(value) if isinstance(leaf, torch.Tensor)]
        self.form = [(tuple(t.shape), t.dtype) for t in tensors]

    def _look(self, command: dict[str, Any]) -> dict[str, Any]:
        """What a call costs its caller, and whether work goes on where events do not see it."""
        contents, clock = self.contents[self.current], self.clock
        waited, returned, hidden, unexplained = [], [], [], []
        for number in range(_CALLS):
            contents.refresh(f"{command['secret']}-{number}")
            clock.synchronise()
            began = perf_counter()
            start = clock.mark()
            self._called(contents.arguments())
            end = clock.mark()
            back = perf_counter()
            clock.wait_for(end)
            seen = perf_counter()
            clock.synchronise()
            now = perf_counter()
            waited.append(now - began)
            returned.append(back - began)
            hidden.append(now - seen)
            explained = max((back - began) * 1e6, clock.elapsed_us(start, end))
            unexplained.append((now - began) * 1e6 - explained)
        self.enqueue_us = median(returned) * 1e6
        return {
            "call_us": median(waited) * 1e6,
            "enqueue_us": self.enqueue_us,
            "hidden_us": min(hidden) * 1e6,
            "unexplained_us": min(unexplained),
            "quick_us": self._quick(command["secret"]),
            "late": self._is_late(command["secret"]),
        }

    def _quick(self, secret: str) -> float:
        """A first idea of the device time."""
        self.replay = None
        return float(median(self._samples(_PROBES, f"{secret}-quick", False, frozenset())))

    def _is_late(self, secret: str) -> bool:
        """Whether the output still changes after the device has become idle."""
        contents = self.contents[self.current]
        for number in range(_PROBES):
            contents.refresh(f"{secret}-late-{number}")
            value = self._called(contents.arguments())
            self.clock.synchronise()
            first = _copies(value)
            pause(_LATE_S)
            self.clock.synchronise()
            if not all(map(_same, first, _copies(value))):
                return True
        return False

    def _capture(self, command: dict[str, Any]) -> dict[str, Any]:
        contents = self.contents[self.current]
        self.slots = contents.slots(self.request.l2_bytes)

        def call_on(slot: list[Any]) -> Callable[[], Any]:
            return lambda: self._called(contents.arguments(slot))

        with within(self.request.compile_seconds):
            self.replay, self.results = self.clock.capture([call_on(s) for s in self.slots])
        return {"slots": len(self.slots)}

    def _turn(self, command: dict[str, Any]) -> dict[str, Any]:
        """Samples, in microseconds per call; none of an idle turn."""
        keep = frozenset(command.get("keep") or ())
        idle = bool(command.get("idle"))
        self.clock.reset_persistence()
        return {"us": self._samples(int(command["k"]), command["secret"], idle, keep)}

    def _samples(self, count: int, secret: str, idle: bool, keep: frozenset[int]) -> list[float]:
        if self.replay is not None:
            return self._replays(count, secret, idle, keep)
        contents, clock = self.contents[self.current], self.clock
        marks = []
        clock.delay(min(_MOST_LEAD_US, 1.3 * count * (self.enqueue_us + _PREPARE_US)))
        for number in range(count):
            told = f"{secret}-{number}"
            contents.refresh(told)
            self._spoil(number)
            clock.flush()
            if idle:
                continue
            arguments = contents.arguments()
            start = clock.mark()
            value = self._called(arguments)
            end = clock.mark()
            marks.append((start, end))
            if number in keep:
                self.kept.append(Kept(self.current, told, _copies(value)))
            del value
        clock.synchronise()
        return [clock.elapsed_us(start, end) for start, end in marks]

    def _replays(self, count: int, secret: str, idle: bool, keep: frozenset[int]) -> list[float]:
        """Replays of the graph, every slot with contents of its own."""
        assert self.replay is not None
        contents, clock = self.contents[self.current], self.clock
        marks = []
        for number in range(count):
            for value in self.results:  # before the inputs, which they may be
                _poisoned(value, number)
            for place, slot in enumerate(self.slots):
                contents.refresh(f"{secret}-{number}-{place}", slot)
            if idle:
                continue
            start = clock.mark()
            self.replay()
            end = clock.mark()
            marks.append((start, end))
            if number in keep:
                place = sum(secret.encode()) % len(self.slots)
                told = f"{secret}-{number}-{place}"
                self.kept.append(Kept(self.current, told, _copies(self.results[place])))
        clock.synchronise()
        return [clock.elapsed_us(start, end) / len(self.slots) for start, end in marks]

    def _spoil(self, number: int) -> None:
        """Memory that the allocator will most likely give to the outputs gets poison."""
        device = self.request.build.device
        spoilt = [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in self.form]
        for tensor in spoilt:
            tensor.fill_(poison(tensor.dtype, number))

    def _dump(self, command: dict[str, Any]) -> dict[str, Any]:
        """Kept outputs as files; what they were computed from is told by set and secret."""
        folder = Path(command["folder"])
        told = []
        for number, kept in enumerate(self.kept):
            name = f"kept-{kept.set}-{number}"
            put(folder, name, kept.leaves)
            told.append({"set": kept.set, "secret": kept.secret, "name": name})
        self.kept.clear()
        return {"kept": told}

    def _testify(self, command: dict[str, Any]) -> dict[str, Any]:
        """The reference's process compares outputs with the truth."""
        with among_others(self.request.lock):
            found = compare_kept(
                command["kept"],
                Path(command["folder"]),
                self.contents,
                self.pristine,
                self.request.build,
            )
        told: dict[str, Any] = msgspec.to_builtins(found)
        return told


def _copies(value: Any) -> list[Any]:
    """The leaves of a result, copied on the device as it is at this moment of its stream."""
    return [
        leaf.detach().as_subclass(torch.Tensor).clone() if isinstance(leaf, torch.Tensor) else leaf
        for _, leaf in leaves(value)
    ]


def _poisoned(value: Any, number: int) -> None:
    for _, leaf in leaves(value):
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            leaf.fill_(poison(leaf.dtype, number))


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.is_floating_point():
        return bool(_allclose(one, other, rtol=0.0, atol=0.0, equal_nan=True))
    return bool(_equal(one, other))


def _said(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:500]}"

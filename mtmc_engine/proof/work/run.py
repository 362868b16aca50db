"""The candidate's process: it is called on every case, and what it leaves behind is saved."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.call import invoke
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.proof.timing.lock import among_others
from mtmc_engine.proof.wire import Build, Call, CandidateCode, Case, Ran, Trace, Trouble
from mtmc_engine.proof.work.build import (
    build_candidate,
    build_reference,
    find_entry,
    import_candidate,
    open_reference,
    source_of,
    token_of,
)
from mtmc_engine.proof.work.drivers import pretend
from mtmc_engine.proof.work.exchange import put, take
from mtmc_engine.proof.work.here import cuda_is
from mtmc_engine.proof.work.memory import Guarded, poison_host_memory
from mtmc_engine.proof.work.record import Budget, TooManyPrograms, count_launches
from mtmc_engine.proof.work.state import GlobalState
from mtmc_engine.proof.work.tensors import (
    Strides,
    laid_out,
    leaves,
    shared_outputs,
    strided,
    structure,
)
from mtmc_engine.proof.work.trace import traced
from mtmc_engine.proof.work.trouble import trouble

# Interpreted programs that optional cases may have, each and together.
_PROGRAMS_PER_CASE = 256
_PROGRAMS = 3000

# Bound before the candidate is imported, so that nothing it replaces is used here.
_equal, _seed, _no_grad = torch.equal, torch.manual_seed, torch.no_grad
_synchronise = torch._C._cuda_synchronize if torch.backends.cuda.is_built() else None


class Request(msgspec.Struct, frozen=True):
    """cases: those to run, by number. inputs, results: folders. strides: of a
    case's inputs, by number, where the file itself does not make them contiguous.

    buffers: names of buffers whose values after a call are results. card: None on a GPU.
    lock: of the device, "" without one.
    """

    build: Build
    code: CandidateCode
    cases: dict[int, Case]
    inputs: str
    results: str
    buffers: tuple[str, ...]
    card: DeviceCard | None
    lock: str = ""
    strides: dict[int, Strides] = {}


def run_candidate(arguments: dict[str, Any], report: Callable[[Any], None]) -> Ran:
    """Job: arguments as in Request; reports {"case": number} before each case.

    Writes per case i: result-i.0 and result-i.1, the first and the second result, then result-i
    with the number of calls and the poison used.
    """
    request = msgspec.convert(arguments, Request, strict=False)
    with among_others(request.lock):
        return _ran(request, report)


def _ran(request: Request, report: Callable[[Any], None]) -> Ran:
    if request.card is not None:
        from mtmc_engine.proof.work import libdevice, narrow

        poison_host_memory()
        pretend(request.card)
        libdevice.provide()
        narrow.provide()
    reference = open_reference(request.build)
    model = build_reference(reference, request.build)
    if isinstance(model, torch.nn.Module):
        model.load_state_dict(take(Path(request.inputs), "state", request.build.device))
    launched: Counter[str] = Counter()
    budget = Budget(_PROGRAMS_PER_CASE, _PROGRAMS)
    count_launches(launched, budget if request.card is not None else None)
    source = source_of(request.code)
    token = token_of(source)
    before = GlobalState()
    with cuda_is(request.build.device):
        try:
            entry = find_entry(import_candidate(request.code, source), reference)
            weights = request.code.weights
            made = build_candidate(entry, reference, request.build, model, weights)
        except BaseException as error:
            return Ran((), trouble(error, "build", request.code), token=token)
    changes = before.changes()
    before.restore()
    theirs = model.state_dict() if isinstance(model, torch.nn.Module) else {}
    actor = _Actor(request, made, budget, frozenset(theirs), before)
    calls: list[Call] = []
    failed: Trouble | None = None
    for number, case in request.cases.items():
        report({"case": number, "done": len(calls)})
        call = actor.play(number, case)
        calls.append(call)
        if call.trouble is not None and not _tolerable(case, call.trouble):
            failed = call.trouble
            break
    changes += tuple(change for change in actor.changes if change not in changes)
    trace = None if failed else actor.trace(launched)
    return Ran(tuple(calls), failed, dict(launched), changes, token, trace)


def _tolerable(case: Case, found: Trouble) -> bool:
    """Whether the run goes on: empty inputs, and layouts that the candidate itself refuses."""
    return case.advisory or (case.layout != "contiguous" and found.refusal)


class _Actor:
    """The candidate, called case by case; cases of a group get the same tensors."""

    def __init__(
        self,
        request: Request,
        made: Any,
        budget: Budget,
        theirs: frozenset[str],
        globals_: GlobalState,
    ) -> None:
        """theirs: names of the reference's parameters and persistent buffers.

        globals_: global state as it was before the candidate; it is put back after each call.
        """
        self.globals = globals_
        self.changes: tuple[str, ...] = ()
        self.request, self.made, self.budget = request, made, budget
        self.group = -1
        self.inputs: list[Any] = []
        self.tree: Any = None
        self.calls = 0
        self.largest: tuple[Case, list[Any]] | None = None
        self.largest_bytes = -1
        self.bare = False
        self.kept: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.state: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        if isinstance(made, torch.nn.Module):
            self.kept = [(buffer, buffer.clone()) for buffer in made.buffers()]
            named = ((n, v) for n, v in made.state_dict(keep_vars=True).items() if n in theirs)
            self.state = {name: (value.detach(), value.detach().clone()) for name, value in named}

    def play(self, number: int, case: Case) -> Call:
        inputs, device = Path(self.request.inputs), self.request.build.device
        originals = take(inputs, f"inputs-{case.key}", device, records=True)
        strides = self.request.strides.get(number, ())
        placed = strided(originals, strides) if strides else laid_out(originals, case.layout)
        contents, self.tree = pytree.tree_flatten(placed)
        memory = Guarded()
        self._place(case, contents, memory)
        guards = len(memory._zones)
        poisons: list[int] = []
        values: list[Any] = []
        self.budget.unlimited = not case.optional
        try:
            for _ in range(2 if case.repeat else 1):
                self._reset(contents)
                memory.call = self.calls
                poisons.append(self.calls)
                self.calls += 1
                _seed(case.seed)
                try:
                    with _no_grad(), self._surroundings(memory):
                        value = invoke(self.made, self._arguments(), self.request.build.keywords)
                        self._synchronise()
                finally:
                    self._put_back()
                values.append(value)
                self._keep(f"result-{number}.{len(poisons) - 1}", value)
        except TooManyPrograms:
            return Call(number, left_out=True)
        except BaseException as error:  # SystemExit too
            if not self.bare and "torch/_dynamo" in traceback.format_exc():
                self.bare = True  # torch.compile does not trace through these modes
                return self.play(number, case)
            return Call(number, trouble(error, "call", self.request.code, number))
        if case.own and contents_bytes(contents) > self.largest_bytes:
            self.largest, self.largest_bytes = (case, contents), contents_bytes(contents)
        overruns = tuple(memory.overruns())
        memory.forget(guards)
        self._put(f"result-{number}", {"calls": len(poisons), "poison": poisons})
        return Call(
            number,
            overruns=overruns,
            mutated=tuple(
                i
                for i, (now, was) in enumerate(zip(self.inputs, contents, strict=True))
                if isinstance(now, torch.Tensor) and not _same(now, was)
            ),
            aliased=self._aliased(value),
            shared=shared_outputs(value),
            reused=self._reused(values),
            drifted=self._drifted(),
        )

    def _put_back(self) -> None:
        """Notes what the call did to global state, and undoes it before anything else is done."""
        found = self.globals.changes()
        if found:
            self.changes += tuple(change for change in found if change not in self.changes)
            self.globals.restore()

    def trace(self, launched: Counter[str]) -> Trace | None:
        """Kernels of one call at the declared shapes; None without a GPU."""
        if self.largest is None or not self.request.build.device.startswith("cuda"):
            return None
        case, contents = self.largest
        self.inputs = [v.clone() if isinstance(v, torch.Tensor) else v for v in contents]

        def call() -> None:
            self._reset(contents)
            _seed(case.seed)
            with _no_grad():
                invoke(self.made, self._arguments(), self.request.build.keywords)

        return traced(call, tuple(launched))

    def _arguments(self) -> list[Any]:
        arguments: list[Any] = pytree.tree_unflatten(self.inputs, self.tree)
        return arguments

    def _keep(self, name: str, value: Any) -> None:
        """Copies a result out of the candidate's memory, at once."""
        self._put(name, self._taken(value))

    def _put(self, name: str, value: Any) -> None:
        put(Path(self.request.results), name, value)

    @contextmanager
    def _surroundings(self, memory: Guarded) -> Iterator[None]:
        """Poisoned memory and, without a GPU, a device called "cuda"."""
        if self.bare:
            yield
            return
        with cuda_is(self.request.build.device), memory:
            yield

    def _place(self, case: Case, contents: list[Any], memory: Guarded) -> None:
        """New guarded tensors for a new group; the same ones for its further cases."""
        fits = case.group == self.group and all(
            not isinstance(a, torch.Tensor) or (a.shape == b.shape and a.stride() == b.stride())
            for a, b in zip(self.inputs, contents, strict=True)
        )
        if not fits:
            self.group = case.group
            self.inputs = [
                memory.guard(value, f"input {i}") if isinstance(value, torch.Tensor) else value
                for i, value in enumerate(contents)
            ]

    def _reset(self, contents: list[Any]) -> None:
        """Fresh contents in the same tensors, and buffers as they were."""
        for now, value in zip(self.inputs, contents, strict=True):
            if isinstance(now, torch.Tensor) and 0 not in now.stride():
                now.copy_(value)
        with _no_grad():
            for buffer, value in self.kept:
                buffer.copy_(value)

    def _taken(self, value: Any) -> dict[str, Any]:
        """A result as plain tensors and numbers."""
        found: dict[str, Any] = {"structure": structure(value), "leaves": {}, "facts": {}}
        for path, leaf in leaves(value):
            found["facts"][path] = _facts(leaf)
            found["leaves"][path] = _plain(leaf)
        for i, tensor in enumerate(self.inputs):
            if isinstance(tensor, torch.Tensor):
                found["leaves"][f"input {i}"] = _plain(tensor)
                found["facts"][f"input {i}"] = _facts(tensor)
        if isinstance(self.made, torch.nn.Module):
            buffers = dict(self.made.named_buffers())
            for name in self.request.buffers:
                if name in buffers:
                    found["leaves"][f"buffer {name}"] = _plain(buffers[name])
                    found["facts"][f"buffer {name}"] = _facts(buffers[name])
        return found

    def _aliased(self, value: Any) -> tuple[str, ...]:
        """Paths of outputs that live in an input's storage or in that of the module's state."""
        given = (*self.inputs, *self._state())
        own = {_storage(v) for v in given if isinstance(v, torch.Tensor) and v.numel()}
        return tuple(
            path
            for path, leaf in leaves(value)
            if isinstance(leaf, torch.Tensor) and leaf.numel() and _storage(leaf) in own
        )

    def _reused(self, values: list[Any]) -> tuple[str, ...]:
        """Paths of outputs whose memory, still held by the caller, the next call returned again.

        Inputs and the module's own state are not the candidate's to choose.
        """
        if len(values) < 2:
            return ()
        given = {_storage(v) for v in (*self.inputs, *self._state()) if isinstance(v, torch.Tensor)}
        pairs = zip(leaves(values[0]), leaves(values[1]), strict=False)
        return tuple(
            path
            for (path, first), (_, second) in pairs
            if isinstance(first, torch.Tensor)
            and isinstance(second, torch.Tensor)
            and first.numel()
            and _storage(first) == _storage(second)
            and _storage(first) not in given
        )

    def _state(self) -> list[torch.Tensor]:
        made = self.made
        return list(made.state_dict().values()) if isinstance(made, torch.nn.Module) else []

    def _drifted(self) -> tuple[str, ...]:
        """Parameters and buffers that the call changed, where their values are no results."""
        names = set(self.request.buffers)
        return tuple(
            name
            for name, (value, before) in self.state.items()
            if name not in names and not _same(value, before)
        )

    def _synchronise(self) -> None:
        if self.request.build.device.startswith("cuda") and _synchronise is not None:
            _synchronise()


def _storage(value: torch.Tensor) -> int:
    return int(value.untyped_storage().data_ptr())


def _facts(leaf: Any) -> dict[str, Any]:
    """Type, dtype, shape, device and strides of a leaf."""
    if not isinstance(leaf, torch.Tensor):
        return {"type": type(leaf).__name__}
    kind = type(leaf)
    known = kind in (torch.Tensor, torch.nn.Parameter)
    return {
        "type": kind.__name__ if known else f"{kind.__module__}.{kind.__name__}",
        "dtype": str(leaf.dtype).removeprefix("torch."),
        "shape": list(leaf.shape),
        "device": leaf.device.type,
        "strides": list(leaf.stride()),
    }


def _plain(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf if isinstance(leaf, int | float | str | bool) else repr(leaf)[:200]
    if leaf.device.type == "meta":
        return torch.empty(0)
    return leaf.detach().as_subclass(torch.Tensor)


def contents_bytes(contents: list[Any]) -> int:
    """Size of a call's tensors together."""
    return sum(v.numel() * v.element_size() for v in contents if isinstance(v, torch.Tensor))


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bitwise equality, so that NaN equals itself."""
    size = one.element_size()
    as_int = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(size)
    if as_int is None or one.is_complex():
        return bool(_equal(torch.view_as_real(one), torch.view_as_real(other)))
    return bool(_equal(one.contiguous().view(as_int), other.contiguous().view(as_int)))

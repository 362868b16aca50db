"""The reference's process: inputs, its own results, and the truth in float64, for each case."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from mtmc_engine.capture.call import invoke
from mtmc_engine.capture.load import Reference, blamed, described
from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.proof.tolerance import Norms
from mtmc_engine.proof.wire import Build, Case, OutputFacts, Truth, Truths
from mtmc_engine.proof.work.build import build_reference, open_reference, randomise
from mtmc_engine.proof.work.compare import same_bits
from mtmc_engine.proof.work.draw import Draw
from mtmc_engine.proof.work.exchange import put
from mtmc_engine.proof.work.moved import Moved, is_float
from mtmc_engine.proof.work.norms import distance, finite_share, size_of
from mtmc_engine.proof.work.rehearsal import may_index, rehearse
from mtmc_engine.proof.work.tensors import (
    dtype_name,
    laid_out,
    leaves,
    shared_outputs,
    strided,
    structure,
)
from mtmc_engine.proof.work.weak import Weaknesses
from mtmc_engine.proof.work.widen import Jitter, Widened, in_float64, widened, widened_model

_NONE = Norms(0.0, 0.0)


class Request(msgspec.Struct, frozen=True):
    """inputs, truths: folders, which exist; nothing else writes there now.

    key: secret under which the truths get their fingerprints. known: what earlier jobs for the
    same build found, of other cases.
    """

    build: Build
    cases: tuple[Case, ...]
    inputs: str
    truths: str
    key: str = ""
    known: Truths | None = None


def make_truths(arguments: dict[str, Any], report: Callable[[Any], None]) -> Truths:
    """Job: runs the reference on every case. Arguments as in Request.

    Writes per case of key k: inputs-k (call arguments, contiguous), and truth-k where candidates
    do not see it; once: state, beside the inputs.
    Raises ReferenceFailed where the file's own inputs fail, UsageError as load_reference does.
    """
    request = msgspec.convert(arguments, Request)
    began = time.monotonic()
    reference = open_reference(request.build)
    model = build_reference(reference, request.build)
    if request.build.randomise:
        randomise(model, request.build.seed)
    if isinstance(model, torch.nn.Module) and request.known is None:
        put(Path(request.inputs), "state", dict(model.state_dict()))
    witness = _Witness(reference, model, request)
    if request.known is not None:
        witness.recall(request.known)
    truths: list[Truth] = []
    for number, case in enumerate(request.cases):
        truths.append(witness.testify(case))
        report({"done": number + 1, "total": len(request.cases), "case": case.name})
    return Truths(
        tuple(truths),
        tuple(witness.notes()),
        witness.weak.independent,
        time.monotonic() - began,
        witness.own_finite,
        witness.narrow,
    )


class _Refused(Exception):
    """The reference does not take a case in float64."""


@dataclass
class _Result:
    """What one call gave: its value, the inputs and the buffers as it left them.

    inputs, before: leaves of the arguments, in order, after the call and before it.
    """

    value: Any
    inputs: list[Any]
    buffers: dict[str, torch.Tensor]
    before: list[Any]


class _Witness:
    """The reference, asked case by case."""

    def __init__(self, reference: Reference, model: Any, request: Request) -> None:
        self.reference, self.model, self.request = reference, model, request
        self.build = request.build
        self.draw = Draw(reference, self.build)
        self.own_finite: float | None = None
        self.weak = Weaknesses()
        self.narrow = ""
        self._wide = False
        self._own_shapes: set[tuple[tuple[int, ...], ...]] = set()
        try:
            self.double = widened_model(model)
        except Exception as error:  # a module that cannot be copied
            self.double, self.narrow = model, described(error)

    def recall(self, known: Truths) -> None:
        """Goes on where an earlier witness of the same reference ended."""
        self.own_finite, self.narrow = known.own_finite, known.narrow
        self._wide = not known.narrow

    def testify(self, case: Case) -> Truth:
        try:
            inputs = self.draw.inputs(case)
            self._rehearse(case, inputs)
            result = self._call(case, inputs)
        except ReferenceFailed:
            raise
        except Exception as error:  # it need not accept every variant
            return Truth(f"the reference refuses it ({type(error).__name__})")
        floats = [value for _, value in leaves(result.value) if is_float(value)]
        if _elsewhere(case, result.value):
            return Truth("the reference broadcasts there what it does not at the declared shapes")
        share = min((finite_share(value) for value in floats), default=1.0)
        if case.own and self.own_finite is None:
            self.own_finite = share
        if self._less_finite(share, case) and case.distribution != "with NaN":
            return Truth("the reference's result is not finite there")
        try:
            saved, facts = self._facts(case, inputs, result)
        except _Refused as error:
            return Truth(f"the reference refuses it in float64 ({error})")
        except Exception as error:
            why = f"its exact result cannot be computed ({described(error)})"
            if case.own:
                name = self.reference.source.path.name
                raise ReferenceFailed(f"{name}: {why}.") from error
            return Truth(why)
        request = self.request
        put(Path(request.inputs), f"inputs-{case.key}", inputs)
        digest = put(Path(request.truths), f"truth-{case.key}", saved, request.key)
        if (case.layout, case.distribution) == ("contiguous", "own"):
            true = [entry["truth"] for entry in saved["outputs"]]
            self.weak.compare_with_earlier(case, [value for value in true if is_float(value)])
        if case.own:
            self.weak.look(facts, saved["outputs"], result.before)
        repeats = not case.repeat or self._repeats(case, inputs, result)
        return Truth(
            "",
            digest,
            tuple(facts),
            _aliased(result, self.model),
            shared_outputs(result.value),
            repeats,
            self.draw.strides(case),
        )

    def _rehearse(self, case: Case, inputs: list[Any]) -> None:
        """Raises where a case of other shapes than the file's own fails on the CPU already."""
        if case.own:
            self._own_shapes.add(case.shapes)
            return
        on_gpu = self.build.device.startswith("cuda")
        if on_gpu and case.shapes not in self._own_shapes and may_index(inputs):
            rehearse(self.model, inputs, self.build.keywords)

    def _laid_out(self, case: Case, inputs: list[Any]) -> list[Any]:
        strides = self.draw.strides(case)
        return strided(inputs, strides) if strides else laid_out(inputs, case.layout)

    def _less_finite(self, share: float, case: Case) -> bool:
        """Whether other contents overflow where the file's own do not."""
        return self.own_finite is not None and share < self.own_finite and not case.own

    def _repeats(self, case: Case, inputs: list[Any], first: _Result) -> bool:
        """Whether a second call gives the same bits."""
        second = self._call(case, inputs)
        pairs = zip(leaves(first.value), leaves(second.value), strict=True)
        return all(
            same_bits(one, other) for (_, one), (_, other) in pairs if isinstance(one, torch.Tensor)
        )

    def _call(self, case: Case, inputs: list[Any]) -> _Result:
        arguments, before = (self._laid_out(case, inputs) for _ in range(2))
        model = copy.deepcopy(self.model) if _has_state(self.model) else self.model
        torch.manual_seed(case.seed)
        with torch.no_grad():
            if case.own:
                doing = f"calling {self.reference.entry}"
                with blamed(self.reference.source, doing, ReferenceFailed):
                    value = invoke(model, arguments, self.build.keywords)
            else:
                value = invoke(model, arguments, self.build.keywords)
        buffers = {} if not _has_state(model) else _changed(self.model, model)
        if self.build.policy.buffers == "ignore":
            buffers = {}
        return _Result(value, pytree.tree_leaves(arguments), buffers, pytree.tree_leaves(before))

    def _exact(
        self, case: Case, inputs: list[Any], model: Any, jitter: Jitter | None = None
    ) -> tuple[_Result, Widened]:
        """The reference in float64; in its own precision where it refuses that.

        Raises _Refused where it takes float64, but not this case: some kernels for one precision
        check less than others do.
        """
        if not self.narrow:
            try:
                wide = pytree.tree_map(widened, inputs)
                found = self._computed(case, wide, model, in_float64(jitter))
            except Exception as error:
                if self._wide:
                    raise _Refused(type(error).__name__) from error
                self.narrow = described(error)
            else:
                self._wide = True
                return found
        narrow = copy.deepcopy(self.model)
        if isinstance(narrow, torch.nn.Module):
            narrow.load_state_dict(model.state_dict())
        like = pytree.tree_leaves(self.draw.inputs(case))
        flat, tree = pytree.tree_flatten(inputs)
        cast = [v.to(o.dtype) if is_float(v) else v for v, o in zip(flat, like, strict=True)]
        given = list(pytree.tree_unflatten(cast, tree))
        return self._computed(case, given, narrow, nullcontext(Widened()))

    def _computed(
        self,
        case: Case,
        inputs: list[Any],
        model: Any,
        surroundings: AbstractContextManager[Widened],
    ) -> tuple[_Result, Widened]:
        arguments = self._laid_out(case, inputs)
        torch.manual_seed(case.seed)
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), surroundings as mode:
            called = copy.deepcopy(model) if _has_state(model) else model
            value = invoke(called, arguments, self.build.keywords)
        buffers = _changed(model, called) if _has_state(model) else {}
        flat = pytree.tree_leaves(arguments)
        return _Result(value, flat, buffers, flat), mode

    def _facts(
        self, case: Case, inputs: list[Any], result: _Result
    ) -> tuple[dict[str, Any], list[OutputFacts]]:
        """What is saved for the judge, and what it is told, over all outputs."""
        own = _outputs(result)
        truth, mode = self._exact(case, inputs, self.double)
        exact = dict(_outputs(truth, own))
        moved = self._moved(case, inputs, exact)
        saved: dict[str, Any] = {"structure": structure(result.value), "outputs": []}
        facts = []
        for path, value in own:
            true = exact.get(path, value)
            entry = {"path": path, "result": value, "truth": true}
            kind = _kind(path, value)
            selection = mode.selection_of(true) if kind == "exact" else None
            if selection is not None:
                kind = "index"
                entry["source"], entry["dim"] = selection.source, selection.dim
            elif kind == "exact" and path in moved.ranges:
                entry["low"], entry["high"] = moved.ranges[path]
            saved["outputs"].append(entry)
            facts.append(_fact(path, kind, value, true, moved.norms.get(path, _NONE)))
        return saved, facts

    def _moved(self, case: Case, inputs: list[Any], exact: dict[str, Any]) -> Moved:
        """How far each output moves when inputs and parameters are rounded once more."""
        moved = Moved(exact)
        if not moved.needed or not self._has_floats(inputs):
            return moved
        if case.layout == "expanded":  # rows that are equal are still rounded one by one
            inputs = laid_out(laid_out(inputs, "expanded"), "contiguous")
            case = msgspec.structs.replace(case, layout="contiguous")
        for nudge in moved.nudges(case.seed, self.build.tf32):
            nudged = pytree.tree_map(nudge.of, inputs)
            model = nudge.model(self.double, self.model)
            try:
                result, _ = self._exact(case, nudged, model, nudge.jitter(inputs))
            except Exception:
                continue
            moved.note(nudge, _outputs(result, list(exact.items())))
        return moved

    def _has_floats(self, inputs: list[Any]) -> bool:
        return isinstance(self.double, torch.nn.Module) or any(
            is_float(value) for value in pytree.tree_leaves(inputs)
        )

    def notes(self) -> list[str]:
        """Weaknesses of the task that show in its own cases."""
        notes = self.weak.notes()
        if self.narrow:
            notes.append(
                f"the reference cannot be computed in float64 ({self.narrow}): "
                "errors are measured against its own result"
            )
        return notes


def _fact(path: str, kind: str, value: Any, true: Any, condition: Norms) -> OutputFacts:
    if not isinstance(value, torch.Tensor):
        return OutputFacts(path, "value", (), type(value).__name__, (), _NONE, _NONE, _NONE)
    measured = is_float(value) and true.shape == value.shape
    return OutputFacts(
        path,
        kind,  # type: ignore[arg-type]
        tuple(value.shape),
        dtype_name(value),
        tuple(value.stride()),
        size_of(true) if measured else _NONE,
        distance(value, true) if measured else _NONE,
        condition,
        finite_share(value) if measured else 1.0,
        isinstance(value, torch.nn.Parameter),
    )


def _kind(path: str, value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return "value"
    if path.startswith("input "):
        return "input"
    if path.startswith("buffer "):
        return "buffer"
    return "float" if is_float(value) else "exact"


def _outputs(result: _Result, like: list[tuple[str, Any]] | None = None) -> list[tuple[str, Any]]:
    """Leaves of a result, then the inputs and buffers that the call changed.

    like: another result's leaves; the same inputs and buffers are then taken.
    """
    found = leaves(result.value)
    if like is not None:
        paths = {path for path, _ in like}
        found += [(f"input {i}", v) for i, v in enumerate(result.inputs) if f"input {i}" in paths]
        found += [(f"buffer {n}", v) for n, v in result.buffers.items() if f"buffer {n}" in paths]
        return found
    for i, (after, before) in enumerate(zip(result.inputs, result.before, strict=True)):
        if isinstance(after, torch.Tensor) and not same_bits(after, before):
            found.append((f"input {i}", after))
    found += [(f"buffer {name}", value) for name, value in result.buffers.items()]
    return found


def _elsewhere(case: Case, value: Any) -> bool:
    """Whether results have other shapes than the graph says: a size of one was broadcast."""
    shapes = tuple(tuple(leaf.shape) for _, leaf in leaves(value) if isinstance(leaf, torch.Tensor))
    known = bool(case.outputs) and len(case.outputs) == len(shapes)
    return known and not case.own and shapes != case.outputs


def _aliased(result: _Result, model: Any) -> tuple[str, ...]:
    """Paths of outputs that live in an input's storage or in that of the module's state."""
    state = model.state_dict().values() if isinstance(model, torch.nn.Module) else ()
    given = (*result.inputs, *state, *result.buffers.values())
    own = {v.untyped_storage().data_ptr() for v in given if isinstance(v, torch.Tensor)}
    return tuple(
        path
        for path, leaf in leaves(result.value)
        if isinstance(leaf, torch.Tensor) and leaf.untyped_storage().data_ptr() in own
    )


def _changed(before: torch.nn.Module, after: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Buffers that a call changed, by attribute path."""
    old = dict(before.named_buffers())
    return {
        name: value
        for name, value in after.named_buffers()
        if name in old and not same_bits(value, old[name])
    }


def _has_state(model: Any) -> bool:
    """Whether a call may leave traces: a module with buffers."""
    return isinstance(model, torch.nn.Module) and any(True for _ in model.buffers())

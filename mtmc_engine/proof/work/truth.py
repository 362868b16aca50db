"""The reference's process: inputs, its own results, and the truth in float64, for each case."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from mtmc_engine.capture.load import Reference, blamed
from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.proof.tolerance import EPSILON, TF32_EPSILON, Norms, arithmetic
from mtmc_engine.proof.wire import Build, Case, OutputFacts, Truth, Truths
from mtmc_engine.proof.work.build import build_reference, open_reference, randomise
from mtmc_engine.proof.work.draw import Draw
from mtmc_engine.proof.work.norms import distance, finite_share, size_of
from mtmc_engine.proof.work.tensors import dtype_name, laid_out, leaves, structure
from mtmc_engine.proof.work.widen import in_float64, perturbed, widened, widened_model

_NONE = Norms(0.0, 0.0)
# Condition errors of small outputs are drawn several times: one draw may be near zero by luck.
_SMALL = 4096
_DRAWS = 3


class Request(msgspec.Struct, frozen=True):
    """folder: where inputs, results and truths go; it exists and is this job's alone."""

    build: Build
    cases: tuple[Case, ...]
    folder: str


def make_truths(arguments: dict[str, Any], report: Callable[[Any], None]) -> Truths:
    """Job: runs the reference on every case. Arguments as in Request.

    Writes per case i: inputs-i.pt (call arguments, contiguous) and truth-i.pt; once: state.pt.
    Raises ReferenceFailed where the file's own inputs fail, UsageError as load_reference does.
    """
    request = msgspec.convert(arguments, Request)
    began = time.monotonic()
    folder = Path(request.folder)
    reference = open_reference(request.build)
    model = build_reference(reference, request.build)
    if request.build.randomise:
        randomise(model, request.build.seed)
    if isinstance(model, torch.nn.Module):
        torch.save(model.state_dict(), folder / "state.pt")
    witness = _Witness(reference, model, request.build, folder)
    truths: list[Truth] = []
    for number, case in enumerate(request.cases):
        truths.append(witness.testify(number, case))
        report({"done": number + 1, "total": len(request.cases), "case": case.name})
    return Truths(tuple(truths), tuple(witness.notes()), time.monotonic() - began)


@dataclass
class _Result:
    """What one call gave: its value, the inputs and the buffers as it left them.

    before: the inputs as they were.
    """

    value: Any
    inputs: list[Any]
    buffers: dict[str, torch.Tensor]
    before: list[Any]


class _Witness:
    """The reference, asked case by case."""

    def __init__(self, reference: Reference, model: Any, build: Build, folder: Path) -> None:
        self.reference, self.model, self.build, self.folder = reference, model, build, folder
        self.double = widened_model(model)
        self.draw = Draw(reference, build)
        self.own_finite: float | None = None
        self._earlier: dict[Any, list[torch.Tensor]] = {}
        self._same: list[bool] = []

    def testify(self, number: int, case: Case) -> Truth:
        try:
            inputs = self.draw.inputs(case)
            result = self._call(case, inputs)
        except ReferenceFailed:
            raise
        except Exception as error:  # it need not accept every variant
            return Truth(f"the reference refuses it ({type(error).__name__})")
        values = leaves(result.value)
        share = min((finite_share(v) for _, v in values if _is_float(v)), default=1.0)
        if case.own and self.own_finite is None:
            self.own_finite = share
        if self.own_finite is not None and share < self.own_finite and case.distribution != "own":
            return Truth("the reference's result is not finite there")
        saved, facts = self._facts(case, inputs, result)
        torch.save(inputs, self.folder / f"inputs-{number}.pt")
        path = self.folder / f"truth-{number}.pt"
        torch.save(saved, path)
        if (case.layout, case.distribution) == ("contiguous", "own"):
            self._compare_with_earlier(case, [v for _, v in values if _is_float(v)])
        return Truth("", file_digest(path), tuple(facts), _aliased(result))

    def _call(self, case: Case, inputs: list[Any]) -> _Result:
        arguments, before = (laid_out(inputs, case.layout) for _ in range(2))
        model = copy.deepcopy(self.model) if _has_state(self.model) else self.model
        torch.manual_seed(case.seed)
        with torch.no_grad():
            if case.own:
                doing = f"calling {self.reference.entry}"
                with blamed(self.reference.source, doing, ReferenceFailed):
                    value = model(*arguments)
            else:
                value = model(*arguments)
        buffers = {} if not _has_state(model) else _changed(self.model, model)
        if self.build.policy.buffers == "ignore":
            buffers = {}
        return _Result(value, arguments, buffers, before)

    def _exact(self, case: Case, inputs: list[Any], model: Any) -> tuple[_Result, Any]:
        arguments = laid_out([widened(value) for value in inputs], case.layout)
        torch.manual_seed(case.seed)
        with torch.no_grad(), in_float64() as mode:
            before = copy.deepcopy(model) if _has_state(model) else model
            value = before(*arguments)
        buffers = _changed(model, before) if _has_state(model) else {}
        return _Result(value, arguments, buffers, arguments), mode

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
            if isinstance(value, torch.Tensor):
                entry["result"], entry["truth"] = value.cpu(), true.cpu()
            kind = _kind(path, value)
            selection = mode.selection_of(true) if kind == "exact" else None
            if selection is not None:
                kind = "index"
                entry["source"], entry["dim"] = selection.source.cpu(), selection.dim
            saved["outputs"].append(entry)
            facts.append(_fact(path, kind, value, true, moved.get(path, _NONE)))
        return saved, facts

    def _moved(self, case: Case, inputs: list[Any], exact: dict[str, Any]) -> dict[str, Norms]:
        """How far each float output moves when inputs and parameters are rounded once more."""
        floats = {path: value for path, value in exact.items() if _is_float(value)}
        if not floats:
            return {}
        small = all(value.numel() <= _SMALL for value in floats.values())
        found: dict[str, Norms] = dict.fromkeys(floats, _NONE)
        tf32 = self.build.tf32
        for draw in range(_DRAWS if small else 1):
            device = next(iter(floats.values())).device
            generator = torch.Generator(device).manual_seed(case.seed + 7919 * (draw + 1))
            nudged = [_nudged(value, tf32, generator) for value in inputs]
            model = _nudged_model(self.double, self.model, tf32, generator)
            moved, _ = self._exact(case, nudged, model)
            for path, value in _outputs(moved, list(exact.items())):
                if path in floats and value.shape == floats[path].shape:
                    off = distance(value, floats[path])
                    found[path] = Norms(
                        max(found[path].largest, off.largest), max(found[path].rms, off.rms)
                    )
        return found

    def _compare_with_earlier(self, case: Case, results: list[torch.Tensor]) -> None:
        """Whether other contents of the same shapes give other results."""
        earlier = self._earlier.setdefault(case.shapes, results)
        if earlier is not results and results:
            self._same.append(all(map(_close, earlier, results)))

    def notes(self) -> list[str]:
        """Weaknesses of the task that show in its own cases."""
        if self._same and all(self._same):
            return ["the output does not depend on the inputs: it is the same for other contents"]
        return []


def _nudged(value: Any, tf32: bool, generator: torch.Generator) -> Any:
    """A floating-point tensor in float64, moved by half an ulp of the arithmetic."""
    if not _is_float(value):
        return value
    kind = arithmetic(dtype_name(value))
    unit = TF32_EPSILON if tf32 and kind == "float32" else EPSILON[kind]
    return perturbed(widened(value), unit / 2, generator)


def _nudged_model(double: Any, model: Any, tf32: bool, generator: torch.Generator) -> Any:
    if not isinstance(double, torch.nn.Module):
        return double
    copied = copy.deepcopy(double)
    narrow = model.state_dict()
    with torch.no_grad():
        for name, value in copied.state_dict().items():
            if _is_float(value) and _is_float(narrow[name]):
                value.copy_(_nudged(narrow[name], tf32, generator))
    return copied


def _fact(path: str, kind: str, value: Any, true: Any, condition: Norms) -> OutputFacts:
    if not isinstance(value, torch.Tensor):
        return OutputFacts(path, "value", (), type(value).__name__, (), _NONE, _NONE, _NONE)
    is_float = _is_float(value) and true.shape == value.shape
    return OutputFacts(
        path,
        kind,  # type: ignore[arg-type]
        tuple(value.shape),
        dtype_name(value),
        tuple(value.stride()),
        size_of(true) if is_float else _NONE,
        distance(value, true) if is_float else _NONE,
        condition,
        finite_share(value) if is_float else 1.0,
    )


def _kind(path: str, value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return "value"
    if path.startswith("input "):
        return "input"
    if path.startswith("buffer "):
        return "buffer"
    return "float" if _is_float(value) else "exact"


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


def _aliased(result: _Result) -> tuple[str, ...]:
    """Paths of outputs that live in an input's storage."""
    own = {v.untyped_storage().data_ptr() for v in result.inputs if isinstance(v, torch.Tensor)}
    return tuple(
        path
        for path, leaf in leaves(result.value)
        if isinstance(leaf, torch.Tensor) and leaf.untyped_storage().data_ptr() in own
    )


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal element by element, NaN equal to NaN."""
    if one.is_floating_point():
        return bool(torch.allclose(one, other, rtol=0.0, atol=0.0, equal_nan=True))
    return bool(torch.equal(one, other))


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


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal but for rounding."""
    slack = 16 * EPSILON[dtype_name(one)] * size_of(one).largest
    return distance(one, other).largest <= slack


def file_digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

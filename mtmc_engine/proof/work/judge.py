"""The judge's process: compares what the candidate saved with the truth."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from mtmc_engine.proof.tolerance import EPSILON, Bound, bound
from mtmc_engine.proof.wire import Case, Finding, Judged, OutputFacts, Truth
from mtmc_engine.proof.work.compare import (
    Comparison,
    compare_exact,
    compare_float,
    compare_index,
    same_bits,
)
from mtmc_engine.proof.work.exchange import Altered, take, there
from mtmc_engine.proof.work.memory import poison
from mtmc_engine.proof.work.norms import distance, finite_share, size_of

_LOOK_S = 0.002
_ATOMICS = "; if that is the order of atomic additions, state TASK['atomics_bound']"


class Request(msgspec.Struct, frozen=True):
    """truths: by case number, with their fingerprints under `key`. nan, atomics_bound: policy.

    stop: name, in `truth`, of a file that appears once no further result will come.
    """

    cases: dict[int, Case]
    truths: dict[int, Truth]
    truth: str
    results: str
    device: str
    key: str = ""
    stop: str = ""
    nan: str = "match"
    atomics_bound: float | None = None


def judge(arguments: dict[str, Any], report: Callable[[Any], None]) -> Judged:
    """Job: arguments as in Request. Findings in the order of the cases, at most one per case."""
    request = msgspec.convert(arguments, Request, strict=False)
    findings: list[Finding] = []
    worst, worst_case = 0.0, -1
    warnings: list[str] = []
    seen: list[int] = []
    for done, (number, case) in enumerate(request.cases.items()):
        if not _arrived(request, number):
            continue
        seen.append(number)
        try:
            finding, share = _case(request, number, case, warnings)
        except _Forged as error:
            finding, share = Finding(number, "SUSPICIOUS", f"{error} ({case.name})"), 0.0
        if finding is not None:
            findings.append(finding)
        if share > worst:
            worst, worst_case = share, number
        report({"done": done + 1, "case": case.name})
    said = tuple(dict.fromkeys(warnings))
    return Judged(tuple(findings), worst, worst_case, said, tuple(seen))


def _arrived(request: Request, number: int) -> bool:
    """Waits for a case's result; False where none will come. Cases are judged as they arrive."""
    results, name = Path(request.results), f"result-{number}"
    while not there(results, name):
        if not request.stop or (Path(request.truth) / request.stop).exists():
            return there(results, name)
        time.sleep(_LOOK_S)
    return True


@dataclass(frozen=True)
class _Place:
    """The case that is looked at, by number. strided: its inputs are not contiguous in the file."""

    number: int
    case: Case
    strided: bool = False

    def unlike(self, verdict: str, what: str, expected: Any, actual: Any) -> Finding:
        """A finding on something other than a value."""
        evidence = {
            "case": self.case.name,
            "shape": [list(shape) for shape in self.case.shapes],
            "layout": self.case.layout,
            "expected": expected,
            "actual": actual,
        }
        sentence = f"{what} is {actual}, the reference's {expected} ({self.case.name})"
        return Finding(self.number, verdict, sentence, evidence)


def _case(
    request: Request, number: int, case: Case, warnings: list[str]
) -> tuple[Finding | None, float]:
    place = _Place(number, case, bool(request.truths[number].strides))
    near = request.device
    digest = request.truths[number].digest
    true = take(Path(request.truth), f"truth-{case.key}", near, request.key, digest)
    poisons, calls = _results(request, number, 2 if case.repeat else 1)
    worst = 0.0
    for call, given in enumerate(calls):
        wrong = _structure(place, true, given)
        if wrong is not None:
            return wrong, worst
        for facts, entry in zip(request.truths[number].outputs, true["outputs"], strict=True):
            wrong = _form(request.device, place, facts, given, warnings)
            if wrong is not None:
                return wrong, worst
            actual = given["leaves"][facts.path]
            found = _compared(request, facts, entry, actual)
            worst = max(worst, found.share)
            if found.verdict:
                trace = _unwritten(actual, poisons[call])
                return _wrong(place, facts, found, call, trace), worst
    return _repeats(request, place, calls), worst


class _Forged(Exception):
    """What lies among the results was not written by the function that writes them."""


def _results(request: Request, number: int, most: int) -> tuple[list[int], list[dict[str, Any]]]:
    """Poisons and results of a case's calls. Raises _Forged where they are not of the known form.

    The process that writes them also runs the candidate's code.
    """
    folder = Path(request.results)
    try:
        saved = take(folder, f"result-{number}")
        poisons = [int(one) for one in saved["poison"]][:most]
        names = [f"result-{number}.{call}" for call in range(len(poisons))]
        calls = [take(folder, name, request.device) for name in names]
    except (Altered, OSError, ValueError, TypeError, KeyError) as error:
        raise _Forged("its results cannot be read: something else wrote them") from error
    if not calls or not all(map(_well_formed, calls)):
        raise _Forged(
            "its results have another form than those of a call: something else made them"
        )
    return poisons, calls


def _well_formed(given: Any) -> bool:
    """Whether a result is as `run._taken` makes it."""
    if not isinstance(given, dict) or not isinstance(given.get("structure"), str):
        return False
    facts, found = given.get("facts"), given.get("leaves")
    if not isinstance(facts, dict) or not isinstance(found, dict) or facts.keys() != found.keys():
        return False
    forms = {"dtype", "shape", "device", "strides", "type"}
    return all(
        isinstance(fact, dict)
        and "type" in fact
        and (not isinstance(found[path], torch.Tensor) or fact.keys() == forms)
        for path, fact in facts.items()
    )


def _structure(place: _Place, true: dict[str, Any], given: dict[str, Any]) -> Finding | None:
    """Nesting and types. Tuples and lists count as the same."""
    expected, actual = true["structure"], given["structure"]
    if expected.replace("list(", "tuple(") == actual.replace("list(", "tuple("):
        return None
    return place.unlike("DTYPE", "what it returns", expected, actual)


def _form(
    device: str,
    place: _Place,
    facts: OutputFacts,
    given: dict[str, Any],
    warnings: list[str],
) -> Finding | None:
    """Presence, exact type, shape, dtype, device and strides of one output.

    Strides must be the reference's for contiguous inputs. For others, those that the file itself
    makes so included, PyTorch's own operators differ in what they give, and that is only told.
    """
    name = _named(facts.path)
    form = given["facts"].get(facts.path)
    if form is None:
        return place.unlike("SHAPE", name, "there", "missing")
    is_value = facts.kind == "value"
    kind = form["type"]
    if kind == "Parameter" and (facts.is_parameter or facts.kind in ("input", "buffer")):
        kind = "Tensor"
    expected_kind = facts.dtype if is_value else "Tensor"
    checks: list[tuple[str, str, Any, Any]] = [("DTYPE", "type", expected_kind, kind)]
    if not is_value and kind == "Tensor":
        where = device.split(":", maxsplit=1)[0]
        checks += [
            ("SHAPE", "shape", list(facts.shape), form["shape"]),
            ("DTYPE", "dtype", facts.dtype, form["dtype"]),
            ("LAYOUT", "device", where, form["device"]),
        ]
    for verdict, what, expected, actual in checks:
        if expected != actual:
            return place.unlike(verdict, f"the {what} of {name}", expected, actual)
    if is_value or _strides(facts.shape, facts.strides) == _strides(facts.shape, form["strides"]):
        return None
    if place.case.layout == "contiguous" and not place.strided:
        what = f"the strides of {name}"
        return place.unlike("LAYOUT", what, list(facts.strides), form["strides"])
    layout = "the file's own" if place.strided else place.case.layout
    warnings.append(f"for {layout} inputs the strides of {name} differ from the reference's")
    return None


def _strides(shape: tuple[int, ...], strides: Any) -> list[int]:
    """Strides that matter: not those of dimensions of size one, none of an empty tensor."""
    if 0 in shape:
        return []
    return [s for n, s in zip(shape, strides, strict=True) if n != 1]


def _compared(
    request: Request, facts: OutputFacts, entry: dict[str, Any], actual: Any
) -> Comparison:
    if facts.kind == "value":
        return _value(entry["truth"], actual)
    if facts.kind == "index":
        return compare_index(actual, entry["truth"], entry["source"], entry["dim"])
    if facts.dtype in EPSILON:
        limits = _bound(facts)
        ignore_nan = request.nan == "ignore"
        return compare_float(actual, entry["result"], entry["truth"], limits, ignore_nan)
    either = [entry[name] for name in ("low", "high") if name in entry]
    return compare_exact(actual, entry["result"], either)


def _value(expected: Any, actual: Any) -> Comparison:
    """A Python number, string or boolean."""
    close = expected == actual
    if isinstance(expected, float) and isinstance(actual, float):
        close = close or abs(expected - actual) <= 1e-6 * abs(expected)
    return Comparison("" if close else "NUMERIC", 0.0, (), expected, actual)


def _bound(facts: OutputFacts) -> Bound:
    return bound(facts.dtype, facts.scale, facts.reference, facts.condition)


def _named(path: str) -> str:
    if path.startswith(("input ", "buffer ")):
        return path
    return f"output {path}" if path else "the output"


def _wrong(place: _Place, facts: OutputFacts, found: Comparison, call: int, trace: str) -> Finding:
    """What is wrong with a value, in one sentence and as facts."""
    name, case = _named(facts.path), place.case
    where = f" at {list(found.index)}" if found.index else ""
    sentence = (
        f"{name}{where} is {found.actual:.6g}, it should be {found.expected:.6g}"
        if (isinstance(found.actual, int | float) and isinstance(found.expected, int | float))
        else f"{name}{where} is {found.actual}, it should be {found.expected}"
    )
    sentence += f" ({case.name}{', second call' if call else ''})"
    if trace:
        sentence += f"; {trace}"
    evidence: dict[str, Any] = {
        "case": case.name,
        "shape": [list(shape) for shape in case.shapes],
        "layout": case.layout,
        "distribution": case.distribution,
        "call": call + 1,
        "output": facts.path,
        "index": list(found.index),
        "expected": found.expected,
        "actual": found.actual,
        "error": found.error,
        "reference_error": facts.reference.largest,
        "bound": _bound(facts).largest if facts.dtype in EPSILON else 0.0,
        "error_rms": found.error_rms,
        "reference_error_rms": facts.reference.rms,
        "bound_rms": _bound(facts).rms if facts.dtype in EPSILON else 0.0,
        "scale": facts.scale.largest,
        "wrong_elements": found.wrong,
    }
    verdict = found.verdict
    if facts.kind == "buffer":
        verdict = "STATE_DRIFT"
    return Finding(place.number, verdict, sentence, {**evidence, "note": trace})


def _unwritten(actual: Any, call: int) -> str:
    """How many elements still hold the poison, in words."""
    if not isinstance(actual, torch.Tensor) or actual.dtype is torch.bool:
        return ""  # of two values neither is told from a result
    value = torch.tensor(poison(actual.dtype, call)).to(actual.dtype)
    count = int((actual == value).sum())
    return f"{count} of {actual.numel()} elements were never written" if count else ""


def _repeats(request: Request, place: _Place, calls: list[dict[str, Any]]) -> Finding | None:
    """Two calls on the same contents must agree bit by bit, or within the stated bound.

    Where the reference itself does not repeat itself, nothing is asked of the candidate.
    """
    if len(calls) < 2 or not request.truths[place.number].repeats:
        return None
    for path, first in calls[0]["leaves"].items():
        second = calls[1]["leaves"][path]
        if not isinstance(first, torch.Tensor) or path.startswith(("input ", "buffer ")):
            continue
        relative = _apart(first, second)
        if relative <= (request.atomics_bound or 0.0):
            continue
        by = f"{relative:.2g} of its size" if math.isfinite(relative) else "whole elements"
        allowed = request.atomics_bound
        sentence = f"{_named(path)} differs between two calls by {by} ({place.case.name})"
        sentence += f", where TASK allows {allowed:.2g}" if allowed else _ATOMICS
        evidence = {
            "case": place.case.name,
            "output": path,
            "relative": relative if math.isfinite(relative) else None,
            "atomics_bound": allowed,
        }
        return Finding(place.number, "NONDETERMINISTIC", sentence, evidence)
    return None


def _apart(first: torch.Tensor, second: torch.Tensor) -> float:
    """Largest difference relative to the size of the first; infinite where NaN comes and goes."""
    if not first.numel() or same_bits(first, second):
        return 0.0
    if not first.is_floating_point():
        return math.inf
    size = size_of(first).largest
    if finite_share(first) != finite_share(second) or not size:
        return math.inf
    return distance(first, second).largest / size

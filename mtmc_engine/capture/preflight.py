"""Facts of the reference that only running it can tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.call import invoke
from mtmc_engine.capture.draw import drawn
from mtmc_engine.capture.export_graph import Export
from mtmc_engine.capture.load import blamed
from mtmc_engine.capture.subject import Subject
from mtmc_engine.capture.twin import twin_inputs
from mtmc_engine.capture.work import elements_of_work
from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.core.graph import Graph
from mtmc_engine.core.task import Twin

_RANDOM_OP = re.compile(
    r"rand.*|.*dropout|bernoulli|multinomial|normal|normal_functional|uniform|poisson|exponential|"
    r"rrelu_with_noise"
)
_IS_RANDOM = "The reference does not repeat itself, so it cannot be judged"

# On a CPU the declared sizes are run up to this work (elements touched).
MOST_REAL_WORK = 3 * 10**8
# Work of making one element of an input: random numbers are slow.
WORK_PER_INPUT = 4
# For a reference without a graph, whose work is not known: elements of its inputs.
MOST_UNKNOWN_ELEMENTS = 10**7


@dataclass(frozen=True)
class Facts:
    """random: the reference does not repeat itself. notes: findings, one sentence each."""

    random: bool
    notes: tuple[str, ...]


def random_operators(graph: Graph) -> list[str]:
    """Names of the graph's operators that draw random numbers."""
    names = {node.op.split(".")[1] for node in graph.nodes if "." in node.op}
    return sorted(filter(_RANDOM_OP.fullmatch, names))


def preflight(subject: Subject, export: Export, twin: Twin | None, on_gpu: bool) -> Facts:
    """Runs the reference once at its declared sizes, and a few times to see how it behaves.

    On a CPU the declared sizes are run only where that is quick; the rest is then seen on the
    twin. Raises ReferenceFailed with the user's line where it fails on its own inputs.
    """
    notes = [
        f"{path or 'The reference'} is called as it is: {why}."
        for path, why in export.opaque.items()
    ]
    dtypes = subject.reference.policy.dtypes
    if len(dtypes) > 1:
        rest = ", ".join(dtypes[1:])
        notes.append(f"Only {dtypes[0]} is proven and timed; open the file again for {rest}.")
    if len(subject.sets) > 1 and not on_gpu:
        notes.append(f"Times are estimated for the first of its {len(subject.sets)} input sets.")
    source = subject.reference.source
    with blamed(source, "the reference", ReferenceFailed):
        if on_gpu and subject.is_real:
            behaviour = _declared(subject, "cuda")
        elif _is_quick(subject, export):
            behaviour = _declared(subject, "cpu") if twin is None else _twin(subject, twin)
            if twin is not None:
                subject.run()
        elif twin is not None:
            behaviour = _twin(subject, twin)
            notes.append("The reference was run at small sizes only: the declared ones are large.")
        else:
            behaviour = Facts(False, ())
            notes.append("The reference was not run: its declared sizes are too large for a CPU.")
    if drawn_by := random_operators(export.graph):
        return Facts(True, (*notes, f"{_IS_RANDOM} ({', '.join(drawn_by)})."))
    return Facts(behaviour.random, (*notes, *behaviour.notes))


def _is_quick(subject: Subject, export: Export) -> bool:
    made = sum(spec.numel for spec in subject.sets[0])
    if not export.graph.captured:
        return made <= MOST_UNKNOWN_ELEMENTS
    work = elements_of_work(export.graph) + WORK_PER_INPUT * made
    return subject.is_real and work <= MOST_REAL_WORK


def _declared(subject: Subject, device: str) -> Facts:
    reference, seed = subject.reference, subject.seed
    inputs = subject.real_inputs(device)
    return facts_of(
        lambda: reference.build(seed, device=device),
        inputs,
        subject.call.tensors,
        subject.keywords,
    )


def _twin(subject: Subject, twin: Twin) -> Facts:
    reference = subject.reference
    if twin.constants:
        reference = reference.reloaded(twin.constants)
    inputs = twin_inputs(reference, twin, subject.seed)
    return facts_of(
        lambda: reference.build(subject.seed, dict(twin.init_args)),
        inputs,
        subject.call.tensors,
        subject.keywords,
    )


def facts_of(
    build: Callable[[], Callable[..., Any]],
    inputs: Sequence[Any],
    targets: Sequence[str],
    keywords: Sequence[str] = (),
) -> Facts:
    """Runs the reference a few times: does it repeat itself, does each input matter?

    build: makes the operator anew, always with the same weights. keywords: as in Subject.
    inputs: call arguments that may be changed; targets: names of the tensors among them.
    """
    first = _called(build(), inputs, keywords, seed=1)
    if not first:
        return Facts(False, ("The reference returns no tensor that can be compared.",))
    again = _called(build(), inputs, keywords, seed=2)
    if not _same(first, again):
        return Facts(True, (f"{_IS_RANDOM}.",))
    notes: list[str] = []
    operator = build()
    _called(operator, inputs, keywords, seed=1)
    if not _same(first, _called(operator, inputs, keywords, seed=1)):
        notes.append("A second call of the same model gives other results: it keeps state.")
    if any(t.is_floating_point() and not torch.isfinite(t).all() for t in first):
        notes.append("The output of the reference is not finite everywhere.")
    notes += [
        f"The output does not depend on {target}."
        for position, target in enumerate(targets)
        if _same(first, _called(build(), _changed(inputs, position), keywords, seed=1))
    ]
    return Facts(False, tuple(notes))


def _called(
    operator: Callable[..., Any], inputs: Sequence[Any], keywords: Sequence[str], seed: int
) -> list[Any]:
    """The result's tensors; the operator gets copies of the inputs."""
    torch.manual_seed(seed)
    copies = pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, inputs)
    with torch.no_grad():
        result = invoke(operator, copies, keywords)
    return [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(one, other, strict=True)
    )


def _changed(inputs: Sequence[Any], position: int) -> list[Any]:
    """The inputs with the tensor at `position` drawn anew from its own elements."""
    leaves, folded = pytree.tree_flatten(list(inputs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensor = leaves[places[position]]
    generator = torch.Generator().manual_seed(position + 1)
    changed = drawn(tensor, tuple(tensor.shape), generator)
    if torch.equal(changed, tensor):
        changed = ~tensor if tensor.dtype == torch.bool else tensor + 1
    leaves[places[position]] = changed
    return list(pytree.tree_unflatten(leaves, folded))

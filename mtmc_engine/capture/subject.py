"""A loaded reference with its operator and call arguments at the first declared input set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.call import Call, call_of, invoke, specs_of
from mtmc_engine.capture.declared import allowed_dims, input_sets, label_of
from mtmc_engine.capture.draw import resized
from mtmc_engine.capture.export_graph import Dims, Export, Exporter, is_data_dependent
from mtmc_engine.capture.fake import fake_call, fake_mode, faked, parameter_elements
from mtmc_engine.capture.load import Reference, blamed
from mtmc_engine.core.errors import ReferenceFailed, UsageError
from mtmc_engine.core.graph import TensorSpec

# Above this many elements of weights and inputs nothing real is made.
MOST_REAL_ELEMENTS = 2 * 10**8


@dataclass(frozen=True)
class Subject:
    """What a capture works on.

    operator: built for real, or under `mode` where its weights are too large for that.
    inputs:   fake call arguments at the first of `sets`, the declared input sets.
    is_real:  whether weights and inputs are small enough to be made.
    keywords: names of the last arguments, which are passed by name.
    """

    reference: Reference
    seed: int
    operator: Callable[..., Any]
    mode: Any
    inputs: list[Any]
    sets: tuple[tuple[TensorSpec, ...], ...]
    is_real: bool
    keywords: tuple[str, ...] = ()

    @property
    def call(self) -> Call:
        return call_of(self.operator, self.inputs, self.keywords)

    @property
    def allowed(self) -> Dims | None:
        """(tensor position, dimension) that TASK lets vary; None: the export decides."""
        name = self.reference.source.path.name
        specs = specs_of(self.inputs)
        return allowed_dims(self.reference.policy, self.call.tensors, specs, name)

    def real_inputs(self, device: str = "cpu") -> list[Any]:
        """Call arguments with values, at the first declared input set."""
        made = resized(self.reference.inputs(self.seed), self.sets[0], self.seed)
        return list(
            pytree.tree_map(lambda v: v.to(device) if isinstance(v, torch.Tensor) else v, made)
        )

    def run(self) -> Any:
        """Calls the operator on real inputs. Raises ReferenceFailed with the user's line."""
        inputs = self.real_inputs()
        with blamed(self.reference.source, "the reference", ReferenceFailed), torch.no_grad():
            return invoke(self.operator, inputs, self.keywords)

    def export(self) -> Export:
        """The operator graph. Raises ReferenceFailed where the reference itself is at fault."""
        export = Exporter(
            self.operator,
            self.inputs,
            self.mode,
            str(self.reference.source.path),
            self.allowed,
            self.run if self.is_real else None,
            self.keywords,
        ).export()
        if not export.graph.captured and not self.is_real:
            with blamed(self.reference.source, "the reference", ReferenceFailed):
                self._run_fake(self.inputs)
        return export

    def check_sets(self) -> None:
        """Raises UsageError where the reference does not take a declared input set."""
        for specs in self.sets[1:]:
            label = label_of([spec.shape for spec in specs])
            with blamed(self.reference.source, f"the reference at {label}", UsageError):
                self._run_fake(faked(self.mode, self.inputs, specs))

    def _run_fake(self, inputs: list[Any]) -> None:
        try:
            with self.mode, torch.no_grad():
                invoke(self.operator, inputs, self.keywords)
        except Exception as error:
            if not is_data_dependent(error):
                raise


def subject_of(reference: Reference, seed: int) -> Subject:
    """Builds operator and fake inputs. Raises UsageError and ReferenceFailed."""
    mode = fake_mode()
    made, keywords = fake_call(reference, seed, mode)
    sets = input_sets(reference.policy, specs_of(made), reference.source.path.name)
    elements = parameter_elements(reference, seed, {}) or 0
    if elements <= MOST_REAL_ELEMENTS:
        operator = reference.build(seed)
    else:
        with mode:
            operator = reference.build(seed)
    inputs = faked(mode, made, sets[0]) if reference.policy.shapes else made
    elements += sum(spec.numel for spec in sets[0])
    is_real = elements <= MOST_REAL_ELEMENTS
    return Subject(reference, seed, operator, mode, inputs, sets, is_real, keywords)

"""Launchers: contiguous operands, sizes from tensors, output allocation, the launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.templates.axes import Axis, Dim, leaves
from mtmc_engine.schedule.templates.space import resolved, storage_axes
from mtmc_engine.schedule.templates.tensors import Tensor
from mtmc_engine.schedule.templates.trace import Output, Trace


@dataclass(frozen=True)
class Sizes:
    """Expressions for sizes at run time, from the launcher's tensors.

    tensors: parameter names by graph value.
    """

    program: Trace
    tensors: Mapping[str, str]

    def of(self, axes: Dim) -> str:
        """Size along `axes` as Python source. Raises Unsupported where no tensor shows it."""
        whole = self._whole(axes)
        if whole is not None:
            return whole
        parts = [self._leaf(axis) for axis in axes]
        if len(parts) > 1:
            parts = [f"({part})" if " " in part else part for part in parts]
        return " * ".join(parts)

    def _whole(self, axes: Dim) -> str | None:
        for name, tensor in self.program.loads.items():
            layout = [resolved(dim) for dim in tensor.dims]
            for first in range(len(layout)):
                for last in range(first + 1, len(layout) + 1):
                    if tuple(axis for dim in layout[first:last] for axis in dim) == axes:
                        return self._shape(self.tensors[name], layout, first, last)
        return None

    def _shape(self, name: str, layout: Sequence[Dim], first: int, last: int) -> str:
        if first == 0 and last == len(layout):
            return f"{name}.numel()" if last > 1 else f"{name}.shape[0]"
        if last - first > 1:
            start, stop = first or "", last if last < len(layout) else ""
            return f"{name}.shape[{start}:{stop}].numel()"
        return f"{name}.shape[-1]" if last == len(layout) > 1 else f"{name}.shape[{first}]"

    def _leaf(self, axis: Axis) -> str:
        whole = self._whole((axis,))
        if whole is not None:
            return whole
        if axis.literal:
            return str(axis.size)
        if axis.formula:
            return axis.formula.format(*(self.dim(dim) for dim in axis.of))
        for name, tensor in self.program.loads.items():
            for at, dim in enumerate(tensor.dims):
                parts = leaves(dim)
                others = [part for part in parts if part is not axis]
                if axis in parts and all(part.literal for part in others):
                    divisors = " // ".join(str(part.size) for part in others)
                    return f"{self.tensors[name]}.shape[{at}] // {divisors}"
        raise Unsupported("the size of an axis is not seen in any tensor")

    def dim(self, dim: Dim) -> str:
        """Size of one dimension."""
        axes = leaves(dim)
        return self.of(axes) if axes else "1"


def other_size(program: Trace, tensors: Mapping[str, str], axes: Dim) -> tuple[str, str]:
    """Name and launcher's expression of a tensor's size that the kernel does not walk along."""
    for load, tensor in program.loads.items():
        for at, dim in enumerate(tensor.dims):
            if leaves(dim) == axes:
                name = f"{tensors[load]}_{_dimension_word(at, len(tensor.dims))}"
                return name, Sizes(program, tensors).of(axes)
    return "size", Sizes(program, tensors).of(axes)


def _dimension_word(at: int, rank: int) -> str:
    """What a reader calls a dimension: images have a height and a width."""
    words = ("width", "height", "depth") if rank > 3 else ("cols", "rows")
    back = rank - at - 1
    return words[back] if back < len(words) and at > 1 - (rank <= 3) * 2 else f"dim{at}"


def allocation(output: Output, sizes: Sizes, name: str) -> str:
    """The statement that allocates one output."""
    program, tensors = sizes.program, sizes.tensors
    for load, tensor in program.loads.items():
        if [leaves(d) for d in tensor.dims] == [leaves(d) for d in output.tensor.dims]:
            dtype = _dtype_argument(output, program, load)
            return f"{name} = torch.empty_like({tensors[load]}{dtype})"
    load = next(iter(program.loads))
    shape = shape_text(output.tensor, sizes)
    return f"{name} = {tensors[load]}.new_empty({shape}{_dtype_argument(output, program, load)})"


def shape_text(tensor: Tensor, sizes: Sizes) -> str:
    """The tensor's shape: a slice of an operand's where one fits, else dimension by dimension."""
    dims = [leaves(dim) for dim in tensor.dims]
    for load, other in sizes.program.loads.items():
        layout = [leaves(dim) for dim in other.dims]
        if dims and len(layout) > len(dims) and layout[: len(dims)] == dims:
            return f"{sizes.tensors[load]}.shape[:{len(dims) - len(layout)}]"
    parts = [sizes.dim(dim) for dim in tensor.dims]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _dtype_argument(output: Output, program: Trace, load: str) -> str:
    if program.specs[load].dtype == output.spec.dtype:
        return ""
    return f", dtype=torch.{output.spec.dtype}"


def contiguous_lines(program: Trace, tensors: Mapping[str, str]) -> list[str]:
    """One statement per operand whose strides the kernel takes for dense.

    Those that are walked through in another order than their dimensions' get it here.
    """
    read = {value.source for value in program.values}
    views = {name: f".permute({', '.join(map(str, o))})" for name, o in program.orders.items()}
    return [
        f"{tensors[name]} = {tensors[name]}{views.get(name, '')}.contiguous()"
        for name, tensor in program.loads.items()
        if storage_axes(tensor) and name in read
    ]

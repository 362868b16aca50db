"""Statements of a kernel: loads, named values, reductions, stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mtmc_engine.schedule.ops import require
from mtmc_engine.schedule.render.expressions import Text, apply, number
from mtmc_engine.schedule.render.frame import Frame
from mtmc_engine.schedule.render.names import Names
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Dim
from mtmc_engine.schedule.templates.functions import Level
from mtmc_engine.schedule.templates.lanes import Lanes
from mtmc_engine.schedule.templates.space import resolved, storage_axes
from mtmc_engine.schedule.templates.tensors import Number, Value
from mtmc_engine.schedule.templates.trace import Output, Trace

LONGEST_INLINE = 52
LONGEST_STORED = 44


@dataclass
class Body:
    """Writes the statements of one kernel.

    tensors: parameter names by graph value; names: of everything in the kernel.
    texts:   expression of each value that is already available, by value.
    helpers: device functions that the statements call.
    given:   names of values; a value that is computed anew keeps its name.
    """

    program: Trace
    frame: Frame
    tensors: Mapping[str, str]
    names: Names
    lanes: Lanes = field(default_factory=lambda: Lanes({}, {}))
    lines: list[str] = field(default_factory=list)
    texts: dict[Value, Text] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    uses: Counter[Value] = field(default_factory=Counter)
    consumers: dict[Value, Value] = field(default_factory=dict)
    given: dict[Value, str] = field(default_factory=dict)
    explained: bool = False

    def __post_init__(self) -> None:
        for value in self.program.values:
            self.uses.update(value.operands)
            for operand in value.operands:
                self.consumers[operand] = value
        self.uses.update(output.tensor.value for output in self.program.outputs)

    def emit(self, values: Iterable[Value]) -> None:
        """Makes the values available, operands first."""
        for value in values:
            if value not in self.texts:
                self._emit(value)

    def _emit(self, value: Value) -> None:
        text = self._expression(value)
        if value in self.lanes.guarded:
            mask = self.frame.mask(resolved(value.axes))
            other = number(self.lanes.guarded[value])
            text = Text(f"tl.where({mask}, {text.text}, {other.text})")
        self._settle(value, text)

    def settle(self, value: Value, text: str) -> None:
        """Makes a value available that is computed by `text`, named where it is worth a name."""
        self._settle(value, Text(text))

    def _settle(self, value: Value, text: Text) -> None:
        if self._is_named(value, text):
            self.define(value, text.text)
        else:
            self.texts[value] = text

    def define(self, value: Value, text: str) -> None:
        """Gives the value a name."""
        name = self.name_of(value)
        self.lines.append(f"{name} = {text}")
        self.texts[value] = Text(name)

    def name_of(self, value: Value) -> str:
        """The name that the value has or will have."""
        if value not in self.given:
            wanted = self._wanted(value)
            self.given[value] = wanted if value.kind == "load" else self.names.fresh(wanted)
        return self.given[value]

    def _expression(self, value: Value) -> Text:
        if value.kind == "load":
            return self._load(value)
        if value.kind == "count":
            return self.frame.count(resolved(value.over))
        if value.kind == "gather":
            return self._gather(value)
        if value.kind == "reduce":
            operand = self.texts[value.operands[0]]
            return Text(f"tl.{value.fold}({operand.text}, {self.frame.folding})")
        require(value.kind == "compute", "a matrix product in a row kernel")
        assert value.function is not None
        if value.function.helper:
            self.helpers.add(value.function.helper)
        return apply(value.function, [self._operand(arg) for arg in value.args])

    def _operand(self, arg: Value | Number) -> Text:
        return self.texts[arg] if isinstance(arg, Value) else number(arg)

    def _load(self, value: Value) -> Text:
        tensor = self.program.loads[value.source]
        axes = storage_axes(tensor)
        pointer = self.pointer(self.tensors[value.source], axes)
        mask = self.frame.mask(axes)
        arguments = [pointer]
        if mask:
            arguments.append(f"mask={mask}")
        other = self.lanes.others.get(value)
        if mask and other is not None:
            arguments.append(f"other={number(other).text}")
            self._explain(other)
        return Text(self._widened(f"tl.load({', '.join(arguments)})", value.source))

    def _explain(self, other: Number) -> None:
        """Says once why masked lanes are infinite."""
        if other in (float("inf"), -float("inf")) and not self.explained:
            self.explained = True
            sign = "-" if other < 0 else ""
            why = f"# Lanes past the end hold {sign}inf, so that no reduction sees them."
            self.lines.append(why)

    def pointer(self, name: str, axes: Dim) -> str:
        """Pointer expression of the current elements of a tensor over `axes`."""
        if not axes:
            return f"{name}_ptr"
        offset = self.frame.offset(axes)
        return f"{name}_ptr + {offset.at(Level.SUM)}"

    def _gather(self, value: Value) -> Text:
        index, where = map(self._operand, value.args)
        tensor = self.program.loads[value.source]
        picking = self.frame.picking(resolved(value.over), index)
        offset = picking.offset(storage_axes(tensor)).at(Level.SUM)
        row_mask = self.frame.mask(resolved(value.axes))
        mask = f"{row_mask} & {where.at(Level.SUM)}" if row_mask else where.text
        pointer = f"{self.tensors[value.source]}_ptr + {offset}"
        return Text(self._widened(f"tl.load({pointer}, mask={mask}, other=0.0)", value.source))

    def _widened(self, load: str, source: str) -> str:
        """The load, in float32 where the tensor holds a half type."""
        half = self.program.specs[source].dtype in ("float16", "bfloat16")
        return f"{load}.to(tl.float32)" if half else load

    def _is_named(self, value: Value, text: Text) -> bool:
        if value.kind == "count" or text.text.isidentifier():
            return False
        if value.kind in ("load", "gather") or self.uses[value] > 1:
            return True
        consumer = self.consumers.get(value)
        if value.kind == "reduce":
            return bool(value.hint) or consumer is None or not _insists(consumer)
        narrow = bool(self.program.reductions) and self._is_narrow(value)
        if narrow and _insists(value) and consumer is not None:
            return True
        return len(text.text) > LONGEST_INLINE and consumer is not None

    def _is_narrow(self, value: Value) -> bool:
        return not any(
            set(resolved(value.axes)) & set(resolved(fold.over)) for fold in self.program.reductions
        )

    def _wanted(self, value: Value) -> str:
        if value.kind == "load":
            return self.tensors[value.source]
        if value.word:
            return value.word
        return f"row_{value.fold}" if value.kind == "reduce" else _word(value)

    def store(self, output: Output, name: str) -> None:
        """Stores one output under the pointer `name`_ptr."""
        self._store(output.tensor.value, name, storage_axes(output.tensor))

    def store_value(self, value: Value, name: str) -> None:
        """Stores a value in the order of its axes under the pointer `name`_ptr."""
        self._store(value, name, resolved(value.axes))

    def _store(self, value: Value, name: str, axes: Dim) -> None:
        mask = self.frame.mask(axes)
        if len(self.texts[value].text) > LONGEST_STORED:
            self.define(value, self.texts[value].text)
        arguments = [self.pointer(name, axes), self.texts[value].text]
        if mask:
            arguments.append(f"mask={mask}")
        self.lines.append(f"tl.store({', '.join(arguments)})")


def _insists(value: Value) -> bool:
    """Whether the value is to have its name wherever it stands."""
    return bool(value.hint) and not value.hint.startswith("~")


def _word(value: Value) -> str:
    """A name for an unnamed computation, from its function."""
    assert value.function is not None
    text = value.function.text
    if value.function is fn.WHERE:
        return "chosen"
    if ".to(" in text:
        return "converted"
    words = {"*": "product", "+": "total", "-": "difference", "/": "quotient"}
    for symbol, word in words.items():
        if f" {symbol} " in text:
            return word
    head = text.split("(")[0].removeprefix("tl.")
    plain = {"exp": "exponential", "sigmoid": "gate", "tanh": "bend", "erf": "bend", "sqrt": "root"}
    return plain.get(head, f"{head}_value" if head.isidentifier() else "value")

"""Statements of a kernel: loads, named values, reductions, stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mtmc_engine.schedule.ops import Unsupported, require
from mtmc_engine.schedule.render.expressions import Text, apply, horner, number
from mtmc_engine.schedule.render.folds import accumulated, fold_text, scan_text
from mtmc_engine.schedule.render.frame import Frame
from mtmc_engine.schedule.render.launcher import other_size
from mtmc_engine.schedule.render.names import Names
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Axis, Dim, leaves
from mtmc_engine.schedule.templates.folds import identity
from mtmc_engine.schedule.templates.functions import Level
from mtmc_engine.schedule.templates.lanes import Lanes
from mtmc_engine.schedule.templates.space import resolved, storage_axes, windows
from mtmc_engine.schedule.templates.tensors import Number, Value
from mtmc_engine.schedule.templates.trace import Output, Trace

LONGEST_INLINE = 52
LONGEST_STORED = 44
_LOOP_NAMES = ("dx", "dy", "dz")


@dataclass
class Body:
    """Writes the statements of one kernel.

    tensors: parameter names by graph value; names: of everything in the kernel.
    texts:   expression of each value that is already available, by value.
    helpers: device functions that the statements call.
    given:   names of values; a value that is computed anew keeps its name.
    sizes:   name -> the launcher's expression of sizes that are not among the frame's.
    loops:   loop variable of each window axis.
    carries: what a scan adds from the blocks before, by scan.
    """

    program: Trace
    frame: Frame
    tensors: Mapping[str, str]
    names: Names
    lanes: Lanes = field(default_factory=lambda: Lanes({}, {}, {}))
    lines: list[str] = field(default_factory=list)
    texts: dict[Value, Text] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    uses: Counter[Value] = field(default_factory=Counter)
    consumers: dict[Value, Value] = field(default_factory=dict)
    given: dict[Value, str] = field(default_factory=dict)
    sizes: dict[str, str] = field(default_factory=dict)
    loops: dict[Axis, str] = field(default_factory=dict)
    carries: dict[Value, str] = field(default_factory=dict)
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
            if value not in self.texts and not windows(value.axes):
                self._emit(value)

    def _emit(self, value: Value) -> None:
        text = self._expression(value)
        if value in self.lanes.guarded:
            mask = self.frame.mask(resolved(value.axes))
            other = number(self.lanes.guarded[value])
            text = Text(f"tl.where({mask}, {text.text}, {other.text})")
        self._settle(value, text)
        if value in self.carries:
            carry = self.carries[value]
            folded = fold_text(value, self.seen_by(value), self.frame.folding, self.helpers)
            self.lines.append(accumulated(value.fold, carry, folded))

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
            only = value.kind == "load" or (value.kind == "pick" and self._reads_alone(value))
            self.given[value] = wanted if only else self.names.fresh(wanted)
        return self.given[value]

    def _reads_alone(self, value: Value) -> bool:
        """Whether nothing else reads the tensor of a pick that has no name of its own."""
        readers = [v for v in self.program.values if v.source == value.source]
        return readers == [value] and not value.word

    def _expression(self, value: Value) -> Text:
        if value.kind == "compute":
            assert value.function is not None
            if value.function.helper:
                self.helpers.add(value.function.helper)
            return apply(value.function, [self._operand(arg) for arg in value.args])
        writers = {
            "load": self._load,
            "count": lambda value: self._count(resolved(value.over)),
            "index": lambda value: self._position(leaves(value.over)),
            "pick": self._pick,
            "reduce": self._folded,
            "scan": self._scanned,
        }
        require(value.kind in writers, "a matrix product in a row kernel")
        return writers[value.kind](value)

    def _scanned(self, value: Value) -> Text:
        block = scan_text(value, self.seen_by(value), self.frame.folding)
        symbol = "*" if value.fold == "prod" else "+"
        carry = self.carries.get(value)
        return Text(f"{carry} {symbol} {block}", Level.SUM) if carry else Text(block)

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

    def _pick(self, value: Value) -> Text:
        pointer = self._picked_pointer(value)
        masks = [self.frame.mask(resolved(value.axes))]
        if value.masked:
            masks.append(self._operand(value.args[-1]).at(Level.AND))
        mask = " & ".join(mask for mask in masks if mask)
        arguments = [pointer]
        if mask:
            arguments.append(f"mask={mask}")
        if value.other is not None:
            arguments.append(f"other={number(value.other).text}")
        return Text(self._widened(f"tl.load({', '.join(arguments)})", value.source))

    def _picked_pointer(self, value: Value) -> str:
        """Where a pick reads: its walked axes by the frame, its positions as they are."""
        dims = [leaves(dim) for dim in self.program.loads[value.source].dims]
        steps: list[tuple[Text, str]] = []
        walked: list[Axis] = []
        for place, dim in zip(value.at, dims, strict=True):
            if not isinstance(place, int):
                walked.extend(leaves(place))
                continue
            steps += self.frame.steps(tuple(walked))
            walked = []
            size = self._count(dim).at(Level.UNARY) if steps and dim else ""
            steps += [(self._operand(value.args[place]), size)] if dim else []
        steps += self.frame.steps(tuple(walked))
        name = f"{self.tensors[value.source]}_ptr"
        return f"{name} + {horner(steps).at(Level.SUM)}" if steps else name

    def _position(self, axes: Dim) -> Text:
        """Position along axes: a window's loop variable, or the frame's index."""
        if axes[0] in self.loops:
            return Text(self.loops[axes[0]])
        return self.frame.offset(resolved(axes))

    def _count(self, axes: Dim) -> Text:
        """Number of elements along axes, a kernel argument where the frame does not walk them."""
        try:
            return self.frame.count(axes)
        except Unsupported:
            wanted, text = other_size(self.program, self.tensors, axes)
            known = {text: name for name, text in self.sizes.items()}
            name = known.get(text) or self.names.fresh(wanted)
            self.sizes[name] = text
            return Text(name)

    def _folded(self, value: Value) -> Text:
        window = windows(value.over)
        if window:
            return Text(self._looped(value, window))
        return Text(fold_text(value, self.seen_by(value), self.frame.folding, self.helpers))

    def seen_by(self, fold: Value) -> str:
        """What a reduction sees of its operand."""
        operand = fold.operands[0]
        if fold not in self.lanes.folding:
            return self.texts[operand].text
        mask = self.frame.mask(resolved(operand.axes))
        other = number(self.lanes.folding[fold]).text
        return f"tl.where({mask}, {self.texts[operand].text}, {other})"

    def _looped(self, fold: Value, window: Dim) -> str:
        """Loops over a window, innermost last; returns the name of what they accumulate."""
        name = self.name_of(fold)
        inner = self._depending(fold, window)
        outside = self.lines
        lines: list[str] = [f"{name} = {number(identity(fold.fold, fold.dtype)).text}"]
        for depth, axis in enumerate(window):
            self.loops[axis] = self.names.fresh(_LOOP_NAMES[len(window) - depth - 1])
            lines.append(f"{'    ' * depth}for {self.loops[axis]} in tl.static_range({axis.size}):")
            known = set(window[: depth + 1])
            self.lines = []
            for value in inner:
                if value not in self.texts and set(windows(value.axes)) <= known:
                    self._emit(value)
            lines += ["    " * (depth + 1) + line for line in self.lines]
        step = accumulated(fold.fold, name, self.texts[fold.operands[0]].text)
        for value in inner:
            self.texts.pop(value, None)
        self.lines = [*outside, *lines, "    " * len(window) + step]
        return name

    def _depending(self, fold: Value, window: Dim) -> list[Value]:
        """Values that the loops compute, operands first."""
        needed = {fold.operands[0]}
        for value in reversed(self.program.values):
            if value in needed:
                needed.update(v for v in value.operands if set(windows(v.axes)) & set(window))
        return [value for value in self.program.values if value in needed]

    def _widened(self, load: str, source: str) -> str:
        """The load, in float32 where the tensor holds a half type."""
        half = self.program.specs[source].dtype in ("float16", "bfloat16")
        return f"{load}.to(tl.float32)" if half else load

    def _is_named(self, value: Value, text: Text) -> bool:
        if value.kind == "count" or text.text.isidentifier():
            return False
        if value.kind in ("load", "pick", "scan") or self.uses[value] > 1:
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
        if value.kind in ("load", "pick"):
            return value.word or self.tensors[value.source]
        if value.word:
            return value.word
        if value.kind in ("reduce", "scan"):
            return f"{'row' if value.kind == 'reduce' else 'running'}_{value.fold}"
        return "position" if value.kind == "index" else _word(value)

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

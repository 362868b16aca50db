"""A task: what is to be optimised and under which policies."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import Arg, Graph, TensorSpec


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """The optional TASK declaration of the user's file (design: The input file).

    shapes: input sets; each is one shape per tensor input of the call.
    library: "allow", "forbid" or the least share of own device time, 0 to 1.
    nan: NaN put into the inputs must come out where the reference's comes out ("match"), is not
    looked at ("ignore"), or a difference is a warning ("report"). NaN that arises without having
    been put in is judged as "match" unless "ignore" is said.
    """

    shapes: tuple[tuple[tuple[int, ...], ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    vary: tuple[str, ...] = ()
    inplace: bool = False
    library: Literal["allow", "forbid"] | float = "allow"
    precision: Literal["match", "tf32"] = "match"
    mode: Literal["as_constructed", "eval", "train"] = "as_constructed"
    buffers: Literal["match", "ignore"] = "match"
    nan: Literal["report", "match", "ignore"] = "report"
    atomics_bound: float | None = None
    reference: str = ""
    launcher: str = ""


class InputSet(Struct, frozen=True):
    """One set of call arguments: tensor specs by argument position; others are kept as made.

    label: "4096x8192" for screens and verdicts.
    """

    label: str
    tensors: tuple[TensorSpec, ...]


class Parameter(Struct, frozen=True):
    """One parameter of the call.

    kind: "" as a rule, "/" by position only, "*" and "**" for those that collect the rest, and
    "name" by name only. default: Python source, None where there is none.
    """

    name: str
    kind: Literal["", "/", "*", "name", "**"] = ""
    default: str | None = None


class Twin(Struct, frozen=True):
    """How to build the same reference at small sizes.

    constants: module-level integers of the user's file -> their small values.
    init_args: (position, small value) of constructor integers.
    tensors:   specs of the twin's call arguments.
    graph:     the twin's graph; same operators and edges as the task's.
    """

    constants: dict[str, int]
    init_args: tuple[tuple[int, int], ...]
    tensors: tuple[TensorSpec, ...]
    graph: Graph


class Task(Struct, frozen=True):
    """What is to be optimised.

    file:  absolute path of the user's file; `digest` is the SHA-256 of its text.
    name:  short name, from the file's; `module` is the name that programs import it by.
    form:  "module" (class `entry` with get_inputs and get_init_inputs) or "function"
           (`entry` with inputs()).
    arguments: names of the call's arguments in order; `fixed` holds the values of those that
           are not tensors (a program falls back to the reference for other values), also of
           those inside of lists and dicts, as "xs[1]".
    parameters: the call's parameters as the reference has them; () where `arguments` are plain.
    keywords: names of the last arguments of a call where these are passed by name.
    vary:  dimensions that may vary: (argument position, dimension) of the tensor inputs.
    random: True where the reference does not repeat itself; it is then not judged.
    twin:  how values are checked on a CPU; None where the reference is small or no twin exists.
    tf32:  torch's TF32 switch for matmuls as the user's file leaves it.
    notes: findings of the pre-flight, one sentence each.
    program: the user's own Triton program, which is then the original; "" where the file holds
           operators of PyTorch only.
    launcher: what a program defines where that is not ModelNew or `entry`: the function that
           launches the user's kernels.
    reference: absolute path of the file that defines `entry`; "" where that is `file`.
    """

    file: str
    digest: str
    name: str
    module: str
    form: Literal["module", "function"]
    entry: str
    policy: Policy
    device: DeviceCard
    inputs: tuple[InputSet, ...]
    graph: Graph
    arguments: tuple[str, ...] = ()
    fixed: dict[str, Arg] = {}
    vary: tuple[tuple[int, int], ...] = ()
    random: bool = False
    twin: Twin | None = None
    tf32: bool = False
    notes: tuple[str, ...] = ()
    program: str = ""
    launcher: str = ""
    reference: str = ""
    parameters: tuple[Parameter, ...] = ()
    keywords: tuple[str, ...] = ()

    @property
    def defines(self) -> str:
        """Name that a program of this task defines: ModelNew, or a function's name."""
        return self.launcher or ("ModelNew" if self.form == "module" else self.entry)

    @property
    def operator(self) -> str:
        """What its kernels are called after: the function, or the file of a module."""
        return self.entry if self.form == "function" else self.name

    @property
    def reference_name(self) -> str:
        """How the reference is found again: "NAME", or "FILE:NAME"."""
        return f"{self.reference}:{self.entry}" if self.reference else self.entry

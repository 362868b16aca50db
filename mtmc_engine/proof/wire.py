"""What the engine and its proof workers tell each other; plain data, sent as JSON."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.task import Policy
from mtmc_engine.proof.tolerance import Norms

Layout = Literal["contiguous", "transposed", "swapped", "sliced", "mixed", "expanded"]
Distribution = Literal[
    "own",
    "normal",
    "times 3",
    "times 100",
    "times 0.01",
    "negated",
    "large offset",
    "constant rows",
    "zero rows",
    "near the range's end",
    "with NaN",
]


class Build(Struct, frozen=True):
    """How to build the operator that is judged: the user's own, or its shrunk twin.

    constants, init_args: as Twin has them, empty for the operator itself.
    randomise: True: constant parameters are moved away from their initial values afterwards;
    False: initialisers that set constants set varied values (build.varied_initialisers).
    tf32: whether matrix products may use TF32, by policy or by the user's own switch.
    keywords: names of the last arguments, which are passed by name.
    """

    file: str
    entry: str
    policy: Policy
    seed: int
    device: str
    constants: dict[str, int] = {}
    init_args: tuple[tuple[int, int], ...] = ()
    randomise: bool = True
    tf32: bool = False
    keywords: tuple[str, ...] = ()


class Case(Struct, frozen=True):
    """One call to compare.

    shapes: of the call's tensors in order. group: cases of one group share their input tensors,
    whose contents change from call to call. own: these are the file's own inputs at declared
    shapes. advisory: a failure is a warning (an empty tensor that nobody declared, or NaN in the
    inputs where the task says nothing about it).
    optional: left out where the interpreter would need too many programs. repeat: called twice.
    outputs: shapes of the result's tensors as the graph has them at these sizes, () where it does
    not tell. key: names its files; the same for the same inputs, calls and expectations.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    layout: Layout
    distribution: Distribution
    seed: int
    group: int
    own: bool = False
    advisory: bool = False
    optional: bool = False
    repeat: bool = False
    outputs: tuple[tuple[int, ...], ...] = ()
    key: str = ""


class OutputFacts(Struct, frozen=True):
    """One tensor of the reference's result.

    path: where it sits in the result, "" for the result itself. kind: "float", "exact" (integers
    and booleans), "index" (points into `source`, along `dim`), "value" (not a tensor) or
    "input" and "buffer" (what the call left in one of these).
    finite: share of finite elements. errors: scale, reference and condition norms of a float.
    is_parameter: the reference returns one of its parameters.
    """

    path: str
    kind: Literal["float", "exact", "index", "value", "input", "buffer"]
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    scale: Norms
    reference: Norms
    condition: Norms
    finite: float = 1.0
    is_parameter: bool = False


class Truth(Struct, frozen=True):
    """What the reference gave for one case; tensors lie in the truth folder.

    skipped: why the case does not count, "" where it does.
    digest: fingerprint of the file of true values. aliased: outputs in an input's storage; shared:
    that begin where an earlier one does.
    repeats: whether two calls of the reference agree bit by bit.
    strides: of the inputs, where the file itself makes them in another layout than contiguous.
    """

    skipped: str
    digest: str = ""
    outputs: tuple[OutputFacts, ...] = ()
    aliased: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    repeats: bool = True
    strides: tuple[tuple[int, ...], ...] = ()


class Truths(Struct, frozen=True):
    """The reference's answer for all cases.

    notes: weaknesses of the task, one sentence each. independent: other inputs give the same.
    own_finite: least share of finite elements among results for the file's own inputs. narrow: why
    the reference is not computed in float64, "" where it is.
    """

    cases: tuple[Truth, ...]
    notes: tuple[str, ...] = ()
    independent: bool = False
    seconds: float = 0.0
    own_finite: float | None = None
    narrow: str = ""


class Trouble(Struct, frozen=True):
    """An exception in the candidate.

    stage: "import", "find", "build", "compile", "call".
    refusal: the candidate's own code raised it on purpose (assert, ValueError, …).
    """

    stage: str
    type: str
    message: str
    line: int = 0
    case: int = -1
    refusal: bool = False
    log: str = ""


class Launch(Struct, frozen=True):
    """One kernel as it was launched at the declared shapes, compiled for the target.

    error: the compiler's message where compilation failed. ptx: without its debugging parts.
    """

    kernel: str
    configuration: str
    grid: tuple[int, ...]
    constants: dict[str, Any]
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    error: str = ""
    ptx: str = ""


class Compiled(Struct, frozen=True):
    """Answer of the ahead-of-time compiler.

    ahead: False where the candidate could not be run for its launches; `why` says the reason.
    weights: how the candidate gets the reference's: "from_reference", "state_dict", "seed"
    (names do not match), or "none" for functions. derived: tensors that its constructor made.
    """

    trouble: Trouble | None
    weights: str = "none"
    derived: tuple[str, ...] = ()
    ahead: bool = True
    why: str = ""
    launches: tuple[Launch, ...] = ()
    state_changes: tuple[str, ...] = ()


class Call(Struct, frozen=True):
    """What one case left behind in the results folder.

    overruns: allocations written past their ends. mutated: inputs that the call changed.
    aliased: outputs that share an input's storage. shared: outputs that begin where an earlier one
    does. reused: outputs whose memory a second call returns again. drifted: parameters and
    buffers, other than results, that the calls changed. left_out: it has too many programs.
    """

    case: int
    trouble: Trouble | None = None
    left_out: bool = False
    overruns: tuple[str, ...] = ()
    mutated: tuple[int, ...] = ()
    aliased: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    reused: tuple[str, ...] = ()
    drifted: tuple[str, ...] = ()


class Trace(Struct, frozen=True):
    """Device time of one call by kernel, microseconds. why: of a trace that could not be taken.

    own: the candidate's Triton kernels. other: everything else, library kernels by name.
    """

    own: dict[str, float] = {}
    other: dict[str, float] = {}
    why: str = ""

    @property
    def share(self) -> float:
        """Part of the device time in the candidate's own kernels, 0 to 1."""
        own, other = sum(self.own.values()), sum(self.other.values())
        return own / (own + other) if own + other else 0.0


class Ran(Struct, frozen=True):
    """Answer of the candidate's process.

    launched: names of its Triton kernels that ran, with their counts.
    state_changes: global state that its import or calls changed.
    token: hash of the source that was run, as `build.token_of`; made before it ran.
    trace: what the device did during one call at the declared shapes; None where not traced.
    """

    calls: tuple[Call, ...]
    trouble: Trouble | None = None
    launched: dict[str, int] = {}
    state_changes: tuple[str, ...] = ()
    token: str = ""
    trace: Trace | None = None


class Finding(Struct, frozen=True):
    """The judge's word on one output of one case. verdict: a verdict class, "" where it passes."""

    case: int
    verdict: str
    sentence: str = ""
    evidence: dict[str, Any] = {}
    warning: str = ""


class Judged(Struct, frozen=True):
    """worst: the largest error as a share of its bound, with its case. seen: cases compared."""

    findings: tuple[Finding, ...]
    worst: float = 0.0
    worst_case: int = -1
    warnings: tuple[str, ...] = ()
    seen: tuple[int, ...] = ()


class CandidateCode(Struct, frozen=True):
    """Where the candidate's source was written, and how it is found.

    beside: folder that its helper modules are imported from, "" for none.
    """

    path: str
    module: str
    beside: str = ""
    weights: str = "none"


class Target(Struct, frozen=True):
    """What is compiled for."""

    card: DeviceCard
    configurations: int = 2

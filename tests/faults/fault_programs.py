"""Small random programs over rows: as PyTorch, as a Triton kernel, and as NumPy in float64.

A program is a chain of up to four steps on a matrix x of R rows and C columns, with a second
matrix y and a vector w of C elements; of one program in three the matrices lie the other way
round, so that it reduces over the first dimension. The Triton form may carry one fault; the NumPy
form computes the same thing, fault included, and says whether the fault has an effect.
"""

import random
from dataclasses import dataclass, replace

import numpy as np

UNARY = {
    # name: (PyTorch, Triton, NumPy), each of {v}
    "relu": ("torch.relu({v})", "tl.maximum({v}, 0.0)", "np.maximum({v}, 0)"),
    "sigmoid": ("torch.sigmoid({v})", "1.0 / (1.0 + tl.exp(-{v}))", "1 / (1 + np.exp(-{v}))"),
    "silu": ("{v} * torch.sigmoid({v})", "{v} / (1.0 + tl.exp(-{v}))", "{v} / (1 + np.exp(-{v}))"),
    "square": ("{v} * {v}", "{v} * {v}", "{v} * {v}"),
    "abs": ("{v}.abs()", "tl.abs({v})", "np.abs({v})"),
    "scale": ("{v} * 1.75", "{v} * 1.75", "{v} * 1.75"),
    "shift": ("{v} + 0.4", "{v} + 0.4", "{v} + 0.4"),
    "softplus": (
        "torch.nn.functional.softplus({v}, threshold=1e9)",
        "tl.maximum({v}, 0.0) + tl.log(1.0 + tl.exp(-tl.abs({v})))",
        "np.maximum({v}, 0) + np.log1p(np.exp(-np.abs({v})))",
    ),
}
BINARY = {
    "add": ("{v} + {o}", "{v} + {o}", "{v} + {o}"),
    "mul": ("{v} * {o}", "{v} * {o}", "{v} * {o}"),
    "sub": ("{v} - {o}", "{v} - {o}", "{v} - {o}"),
    "larger": ("torch.maximum({v}, {o})", "tl.maximum({v}, {o})", "np.maximum({v}, {o})"),
}
ROWS = ("centre", "rms", "normalise", "layer norm", "softmax")
WITH_EPS = ("rms", "normalise", "layer norm")
REDUCTIONS = ("sum", "mean", "max")
# Rows that each program of a kernel works on.
TILE_ROWS = 8
KINDS = (
    *("index off by one", "wrong mask", "wrong axis", "dropped term"),
    *("wrong eps place", "lower precision"),
)


@dataclass(frozen=True)
class Step:
    """kind: "unary", "y", "w", "rows" or "reduce". name: of its operation. eps: of a norm."""

    kind: str
    name: str
    eps: float = 0.0


@dataclass(frozen=True)
class Fault:
    """kind: one of KINDS. step: which step it sits in, -1 for a load. detail: what exactly."""

    kind: str
    step: int
    detail: str


@dataclass(frozen=True)
class Program:
    """down: matrices are stored as columns by rows."""

    steps: tuple[Step, ...]
    rows: int
    columns: int
    fault: Fault | None = None
    down: bool = False

    def with_fault(self, fault: Fault):
        return replace(self, fault=fault)

    @property
    def uses(self):
        """Names of the arguments, in order."""
        kinds = {step.kind for step in self.steps}
        return ["x", *(name for name in ("y", "w") if name in kinds)]

    @property
    def reduced(self):
        return self.steps[-1].kind == "reduce"

    @property
    def shape(self):
        """Of a matrix as it is stored."""
        return (self.columns, self.rows) if self.down else (self.rows, self.columns)

    def at(self, row, column):
        """Where an element lies, as text of Triton."""
        return f"{column} * n_rows + {row}" if self.down else f"{row} * n_cols + {column}"


def random_program(source: random.Random) -> Program:
    steps = []
    for _ in range(source.randint(1, 4)):
        kind = source.choice(["unary", "y", "w", "rows", "rows"])
        if kind == "unary":
            steps.append(Step("unary", source.choice(sorted(UNARY))))
        elif kind == "y":
            steps.append(Step("y", source.choice(sorted(BINARY))))
        elif kind == "w":
            steps.append(Step("w", source.choice(["add", "mul"])))
        else:
            eps = source.choice([1e-5, 1e-4, 1e-3, 1e-2])
            steps.append(Step("rows", source.choice(ROWS), eps))
    if len(steps) < 4 and source.random() < 0.4:
        steps.append(Step("reduce", source.choice(REDUCTIONS)))
    rows, columns = source.choice([3, 5, 8, 12]), source.choice([7, 16, 21, 32, 45])
    return Program(tuple(steps), rows, columns, down=source.random() < 1 / 3)


def faults_of(program: Program) -> list[Fault]:
    """Every fault that the program can carry."""
    steps = list(enumerate(program.steps))
    reducing = [(i, step) for i, step in steps if step.kind in ("rows", "reduce")]
    plain = next((i for i, _ in reducing), len(steps))
    found = [
        Fault("index off by one", -1, f"{name} {shift:+d}")
        for name in program.uses
        for shift in (1, -1)
    ]
    found += [Fault("index off by one", -1, f"rows of {n}") for n in program.uses if n != "w"]
    found += [Fault("index off by one", -1, f"out {shift:+d}") for shift in (1, -1)]
    found += [Fault("wrong mask", -1, f"{name} without its last column") for name in program.uses]
    ends = ("row",) if program.reduced else ("row", "column")
    found += [Fault("wrong mask", -1, f"out without its last {end}") for end in ends]
    for i, _ in reducing:
        wrong = ("drops the last column", "drops columns after the last 16", "counts padding")
        found += [Fault("wrong mask", i, detail) for detail in wrong]
    found += [Fault("wrong axis", i, "over a column") for i, _ in reducing if i == plain]
    found += [Fault("wrong axis", i, "w by row") for i, step in steps if step.kind == "w"]
    if len(steps) > 1:
        found += [Fault("dropped term", i, "step") for i, step in steps if step.kind != "reduce"]
    means = ("layer norm", "mean")
    found += [Fault("dropped term", i, "mean") for i, step in steps if step.name in means]
    for i, step in steps:
        if step.name in WITH_EPS:
            found += [Fault("wrong eps place", i, place) for place in ("outside", "gone")]
    for i, _ in steps:
        found += [Fault("lower precision", i, kind) for kind in ("float16", "bfloat16")]
    kinds = ("float16", "bfloat16")
    found += [Fault("lower precision", -1, f"{name} {k}") for name in program.uses for k in kinds]
    found += [Fault("lower precision", len(steps), kind) for kind in kinds]
    return found


def random_fault(program: Program, kind: str, source: random.Random) -> Program | None:
    fitting = [fault for fault in faults_of(program) if fault.kind == kind]
    return replace(program, fault=source.choice(fitting)) if fitting else None


# ---------------------------------------------------------------------------- PyTorch


def torch_source(program: Program) -> str:
    """The reference: a function `operator` and its inputs."""
    lines = ["import torch", "", f"def operator({', '.join(program.uses)}):"]
    turned = [name for name in program.uses if program.down and name != "w"]
    lines += [f"    {name} = {name}.t()" for name in turned] + ["    v = x"]
    lines += [f"    v = {_torch_step(step)}" for step in program.steps]
    back = ".t().contiguous()" if program.down and not program.reduced else ""
    matrix = f"torch.randn{program.shape}"
    made = {"x": matrix, "y": matrix, "w": f"torch.randn({program.columns})"}
    drawn = ", ".join(made[name] for name in program.uses)
    ending = [f"    return v{back}", "", "def inputs():", f"    return [{drawn}]", ""]
    return "\n".join([*lines, *ending])


def _torch_step(step: Step) -> str:
    mean = "v.mean(-1, keepdim=True)"
    forms = {
        "centre": f"v - {mean}",
        "rms": f"v / torch.sqrt((v * v).mean(-1, keepdim=True) + {step.eps})",
        "normalise": f"torch.nn.functional.normalize(v, dim=-1, eps={step.eps})",
        "layer norm": f"torch.nn.functional.layer_norm(v, v.shape[-1:], eps={step.eps})",
        "softmax": "torch.softmax(v, -1)",
        "sum": "v.sum(-1)",
        "mean": "v.mean(-1)",
        "max": "v.amax(-1)",
    }
    if step.kind == "unary":
        return UNARY[step.name][0].format(v="v")
    if step.kind in ("y", "w"):
        return BINARY[step.name][0].format(v="v", o=step.kind)
    return forms[step.name]


# ---------------------------------------------------------------------------- Triton


def triton_source(program: Program) -> str:
    """The candidate: one kernel, eight rows for each program, whole rows in registers."""
    names = program.uses
    pointers = ", ".join(f"{name}_ptr" for name in names)
    kernel = [
        "@triton.jit",
        f"def rows_kernel({pointers}, out_ptr, n_rows, n_cols, "
        "BLOCK: tl.constexpr, ROWS: tl.constexpr, DOWN: tl.constexpr):",
        "    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]",
        "    cols = tl.arange(0, BLOCK)[None, :]",
        "    inside = row < n_rows",
        "    mask = cols < n_cols",
        *_loads(program),
        "    v = x",
        *[line for i in range(len(program.steps)) for line in _triton_step(program, i)],
        *_store(program),
    ]
    kept = "1:" if program.down else ":-1"
    shape = f"x.shape[{kept}]" if program.reduced else "x.shape"
    launcher = [
        f"def operator({', '.join(names)}):",
        *[f"    {name} = {name}.contiguous()" for name in names],
        f"    out = torch.empty({shape}, device=x.device, dtype=x.dtype)",
        f"    {'cols, rows' if program.down else 'rows, cols'} = x.shape",
        "    if rows and cols:",
        "        sizes = triton.next_power_of_2(cols), triton.next_power_of_2(rows)",
        f"        grid = (triton.cdiv(rows, {TILE_ROWS}),)",
        f"        rows_kernel[grid]({', '.join(names)}, out, rows, cols, "
        f"BLOCK=sizes[0], ROWS={TILE_ROWS}, DOWN=sizes[1])",
        *(["    elif rows:", "        out.zero_()"] if program.reduced else []),
        "    return out",
    ]
    head = ["import torch", "import triton", "import triton.language as tl", ""]
    return "\n".join([*head, *kernel, "", *launcher, ""])


def _loads(program: Program) -> list[str]:
    lines = []
    for name in program.uses:
        rows = "" if name == "w" else " & inside"
        row, at, mask = "row", "cols", "mask"
        detail = _of_loads(program)
        if detail == f"rows of {name}":
            row, rows = "(row + 1)", " & (row + 1 < n_rows)"
        if detail.startswith(f"{name} +"):
            at, mask = "cols + 1", "(cols + 1 < n_cols)"
        elif detail.startswith(f"{name} -"):
            at, mask = "cols - 1", "mask & (cols >= 1)"
        elif detail == f"{name} without its last column":
            mask = "(cols < n_cols - 1)"
        where = at if name == "w" else program.at(row, f"({at})")
        load = f"tl.load({name}_ptr + {where}, mask={mask}{rows}, other=0.0)"
        narrow = next((k for k in ("float16", "bfloat16") if detail == f"{name} {k}"), "")
        rounded = f".to(tl.{narrow}).to(tl.float32)" if narrow else ""
        lines.append(f"    {name} = {load}{rounded}")
    return lines


def _of_loads(program: Program) -> str:
    """What is wrong with a load or the store, "" for nothing."""
    return program.fault.detail if program.fault and program.fault.step < 0 else ""


def _store(program: Program) -> list[str]:
    """A shift goes along the columns, or along the rows where one value is left of each."""
    detail, fault = _of_loads(program), program.fault
    where = {"row": "row", "cols": "cols"}
    mask = "inside" if program.reduced else "mask & inside"
    if detail in ("out +1", "out -1"):
        moved, size = ("row", "n_rows") if program.reduced else ("cols", "n_cols")
        where[moved] = f"({moved} {detail[4:]})"
        mask = f"{mask} & ({where[moved]} >= 0) & ({where[moved]} < {size})"
    elif detail == "out without its last row":
        mask += " & (row < n_rows - 1)"
    elif detail == "out without its last column":
        mask += " & (cols < n_cols - 1)"
    lines = []
    if fault and fault.step == len(program.steps):
        lines = [f"    v = v.to(tl.{fault.detail}).to(tl.float32)"]
    at = where["row"] if program.reduced else program.at(where["row"], where["cols"])
    return [*lines, f"    tl.store(out_ptr + {at}, v, mask={mask})"]


def _triton_step(program: Program, number: int) -> list[str]:
    step, fault = program.steps[number], program.fault
    here = fault if fault and fault.step == number else None
    lines = []
    if here and here.kind == "lower precision":
        lines.append(f"    v = v.to(tl.{here.detail}).to(tl.float32)")
    if here and here.detail == "step":
        return lines
    if step.kind == "unary":
        return [*lines, f"    v = {UNARY[step.name][1].format(v='v')}"]
    if step.kind in ("y", "w"):
        if here and here.detail == "w by row":
            lines.append("    w = tl.load(w_ptr + row % n_cols)")
        return [*lines, f"    v = {BINARY[step.name][1].format(v='v', o=step.kind)}"]
    return [*lines, *_triton_reduction(program, number, here)]


def _triton_reduction(program: Program, number: int, here: Fault | None) -> list[str]:
    step = program.steps[number]
    s, keep, count = "v", "mask", "n_cols"
    lines = []
    if here and here.detail == "drops the last column":
        keep = "(cols < n_cols - 1)"
    elif here and here.detail == "drops columns after the last 16":
        keep = "(cols < n_cols // 16 * 16)"
    elif here and here.detail == "counts padding":
        keep = "(cols < BLOCK)"
    elif here and here.detail == "over a column":
        lines += _column(program, number)
        s, keep, count = "c", "c_mask", "n_rows"

    def total(text: str) -> str:
        return f"tl.sum(tl.where({keep}, {text}, 0.0), 1)[:, None]"

    def largest(text: str) -> str:
        return f"tl.max(tl.where({keep}, {text}, -float('inf')), 1)[:, None]"

    eps = step.eps
    place = here.detail if here and here.kind == "wrong eps place" else ""
    if step.name == "centre":
        return [*lines, f"    v = v - {total(s)} / {count}"]
    if step.name == "rms":
        squares = f"    ms = {total(f'{s} * {s}')} / {count}"
        return [*lines, squares, f"    v = v / {_root(place, eps)}"]
    if step.name == "normalise":
        norm = f"    norm = tl.sqrt({total(f'{s} * {s}')})"
        wrong = {"outside": f"(norm + {eps})", "gone": "norm"}
        return [*lines, norm, f"    v = v / {wrong.get(place, f'tl.maximum(norm, {eps})')}"]
    if step.name == "layer norm":
        mean = f"    mean = {total(s)} / {count}"
        if here and here.detail == "mean":
            mean = "    mean = 0.0"
        squares = f"    ms = {total(f'({s} - mean) * ({s} - mean)')} / {count}"
        return [*lines, mean, squares, f"    v = (v - mean) / {_root(place, eps)}"]
    if step.name == "softmax":
        top = f"    top = {largest(s)}"
        whole = f"    whole = {total(f'tl.exp({s} - top)')}"
        return [*lines, top, whole, "    v = tl.exp(v - top) / whole"]
    divided = "" if here and here.detail == "mean" else f" / {count}"
    forms = {"sum": total(s), "mean": f"{total(s)}{divided}", "max": largest(s)}
    return [*lines, f"    v = {forms[step.name]}"]


def _root(place: str, eps: float) -> str:
    forms = {"outside": f"(tl.sqrt(ms) + {eps})", "gone": "tl.sqrt(ms)"}
    return forms.get(place, f"tl.sqrt(ms + {eps})")


def _column(program: Program, number: int) -> list[str]:
    """The steps before `number` once more, on column `row` (modulo the columns) as c."""
    lines = [
        "    down = tl.arange(0, DOWN)[None, :]",
        "    c_mask = down < n_rows",
        f"    c_at = {program.at('down', '(row % n_cols)')}",
        "    c = tl.load(x_ptr + c_at, mask=c_mask, other=0.0)",
    ]
    for step in program.steps[:number]:
        if step.kind == "unary":
            lines.append(f"    c = {UNARY[step.name][1].format(v='c')}")
        else:
            at = "row % n_cols" if step.kind == "w" else "c_at"
            mask = "" if step.kind == "w" else ", mask=c_mask, other=0.0"
            lines.append(f"    other = tl.load({step.kind}_ptr + {at}{mask})")
            lines.append(f"    c = {BINARY[step.name][1].format(v='c', o='other')}")
    return lines


# ---------------------------------------------------------------------------- NumPy


def numpy_result(program: Program, arguments: dict, dtype=np.float64) -> np.ndarray:
    """What the kernel computes, fault included, on padded rows with their masks.

    arguments: x and, where used, y and w as arrays; computed in `dtype`.
    """
    columns = arguments["x"].shape[1]
    block = 1 << (columns - 1).bit_length()
    cols = np.arange(block)
    given = {}
    for name in program.uses:
        given[name] = _padded(program, name, arguments[name].astype(dtype), block)
    v = given["x"]
    mask = cols < columns
    with np.errstate(all="ignore"):
        for number in range(len(program.steps)):
            v = _numpy_step(program, number, v, given, mask)
        if program.fault and program.fault.step == len(program.steps):
            v = _rounded(v, program.fault.detail)
    return _stored(program, v if program.reduced else v[:, :columns])


def _stored(program, v):
    """As it lies in memory that was NaN before."""
    detail, out = _of_loads(program), np.full_like(v, np.nan)
    if detail in ("out +1", "out -1"):
        kept, at = (slice(None, -1), slice(1, None))[:: 1 if detail == "out +1" else -1]
        out[..., at] = v[..., kept]
    elif detail == "out without its last row":
        out[:-1] = v[:-1]
    elif detail == "out without its last column":
        out[..., :-1] = v[..., :-1]
    else:
        return v
    return out


def _padded(program, name, values, block):
    columns = values.shape[-1]
    wide = np.zeros((*values.shape[:-1], block), values.dtype)
    detail = _of_loads(program)
    if detail == f"rows of {name}":
        wide[:-1, :columns] = values[1:]
    elif detail in (f"{name} float16", f"{name} bfloat16"):
        wide[..., :columns] = _rounded(values, detail.split()[1])
    elif detail.startswith(f"{name} +"):
        wide[..., : columns - 1] = values[..., 1:]
    elif detail.startswith(f"{name} -"):
        wide[..., 1:columns] = values[..., : columns - 1]
    elif detail == f"{name} without its last column":
        wide[..., : columns - 1] = values[..., : columns - 1]
    else:
        wide[..., :columns] = values
    return wide


def _numpy_step(program, number, v, given, mask):
    step, fault = program.steps[number], program.fault
    here = fault if fault and fault.step == number else None
    if here and here.kind == "lower precision":
        v = _rounded(v, here.detail)
    if here and here.detail == "step":
        return v
    if step.kind == "unary":
        return eval(UNARY[step.name][2].format(v="v"), {"np": np, "v": v})
    if step.kind in ("y", "w"):
        other = given[step.kind]
        if here and here.detail == "w by row":
            other = other[np.arange(v.shape[0]) % mask.sum()][:, None]
        return eval(BINARY[step.name][2].format(v="v", o="o"), {"np": np, "v": v, "o": other})
    return _numpy_reduction(step, v, mask, here)


def _rounded(v, kind):
    if kind == "float16":
        return v.astype(np.float16).astype(v.dtype)
    bits = v.astype(np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(v.dtype)


def _numpy_reduction(step, v, mask, here):
    columns, cols = int(mask.sum()), np.arange(mask.size)
    keep, count, s = mask[None, :], columns, v
    detail = here.detail if here else ""
    if detail == "drops the last column":
        keep = (cols < columns - 1)[None, :]
    elif detail == "drops columns after the last 16":
        keep = (cols < columns // 16 * 16)[None, :]
    elif detail == "counts padding":
        keep = np.ones_like(mask)[None, :]
    elif detail == "over a column":
        s = v[:, np.arange(v.shape[0]) % columns].T
        keep, count = np.ones((1, v.shape[0]), bool), v.shape[0]

    def total(values):
        return np.where(keep, values, 0).sum(-1, keepdims=True)

    def largest(values):
        return np.where(keep, values, -np.inf).max(-1, keepdims=True)

    eps = v.dtype.type(step.eps)

    def root(ms):
        if detail == "outside":
            return np.sqrt(ms) + eps
        return np.sqrt(ms) if detail == "gone" else np.sqrt(ms + eps)

    if step.name == "centre":
        return v - total(s) / count
    if step.name == "rms":
        return v / root(total(s * s) / count)
    if step.name == "normalise":
        norm = np.sqrt(total(s * s))
        return v / {"outside": norm + eps, "gone": norm}.get(detail, np.maximum(norm, eps))
    if step.name == "layer norm":
        mean = 0.0 if detail == "mean" else total(s) / count
        return (v - mean) / root(total((s - mean) ** 2) / count)
    if step.name == "softmax":
        top = largest(s)
        return np.exp(v - top) / total(np.exp(s - top))
    divisor = 1 if detail == "mean" else count
    forms = {"sum": total(s), "mean": total(s) / divisor, "max": largest(s)}
    return forms[step.name][:, 0]


# An effect beyond rounding: as a share of the result's size, and as a multiple of what float32
# costs the right program on the same numbers.
_SHARE, _MULTIPLE = 1e-5, 16.0


def has_effect(program: Program, seed: int = 0) -> bool:
    """Whether the fault changes results that a user may see, beyond rounding.

    Looked at: the program's own shape and uneven ones, normal values and 3 and 0.01 times those.
    """
    right = replace(program, fault=None)
    generator = np.random.default_rng(seed)
    shapes = [(program.rows, program.columns), (3, program.columns + 1), (4, 17), (2, 33)]
    for rows, columns in shapes:
        for factor in (1.0, 3.0, 0.01):
            drawn = {
                "x": factor * generator.standard_normal((rows, columns)),
                "y": factor * generator.standard_normal((rows, columns)),
                "w": factor * generator.standard_normal(columns),
            }
            drawn = {name: value.astype(np.float32) for name, value in drawn.items()}
            true = numpy_result(right, drawn)
            narrow = numpy_result(right, drawn, np.float32)
            wrong = numpy_result(program, drawn)
            size = np.abs(true).max()
            rounding = np.abs(narrow - true).max()
            if not np.isfinite(wrong).all():
                return True
            if np.abs(wrong - true).max() > max(_SHARE * size, _MULTIPLE * rounding):
                return True
    return False

"""References and candidates for a real GPU: cheats, honest mistakes, and honest kernels.

Each candidate is a kernel that an honest one becomes by a change of a few words.
"""

import ast
from dataclasses import dataclass, field
from pathlib import Path

PROVEN = ("FASTER", "SAME", "AMBIGUOUS", "SLOWER")
WRONG = ("NUMERIC", "NONFINITE")

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
"""


@dataclass(frozen=True)
class Case:
    """number: of the list of cases, or a name. right: verdicts that are right.

    warning: words that a warning must contain. task: a TASK declaration of the reference.
    bounds, options: of the subject. unmeasured: whether a number would be wrong.
    """

    number: str
    name: str
    reference: str
    candidate: str
    right: tuple[str, ...]
    warning: str = ""
    bounds: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    unmeasured: bool = False


def module(forward, inputs, task="{}", parameters="x"):
    """A reference file."""
    return f"""{HEAD}
TASK = {task}

class Model(nn.Module):
    def forward(self, {parameters}):
        {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


FUSED = module(
    "return torch.relu(a) * 2 + b",
    "torch.randn(4096, 4096), torch.randn(4096, 4096)",
    parameters="a, b",
)
FUSED_FORBIDDEN = FUSED.replace("TASK = {}", 'TASK = {"library": "forbid"}')
MATMUL = module(
    "return a @ b", "torch.randn(2048, 2048), torch.randn(2048, 2048)", parameters="a, b"
)
SOFTMAX = module("return torch.softmax(x, -1)", "torch.randn(4096, 8192)")
SCALE = module("x.mul_(1.5)\n        return x", "torch.randn(1024, 1024)", task='{"inplace": True}')
VECTOR = module("return x + 1", "torch.randn(1024)")
ROWS = module("return x * 2", "torch.randn(70000, 16)")
HUGE = module(
    "return x.clone()",
    "torch.randint(0, 100, (1 << 20,), dtype=torch.int8).repeat(2100)",
)

FUSED_KERNEL = (
    HEAD
    + """
{top}
calls = 0
kept = {{}}

@triton.jit
def fused(a_ptr, b_ptr, out_ptr, flag_ptr, n, far, BLOCK: tl.constexpr):
    {wait}
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, mask=at < n)
    b = tl.load(b_ptr + at, mask=at < n)
    tl.store(out_ptr + at + far, {value}, mask=at < n)

def launched(a, b):
    a, b = a.contiguous(), b.contiguous()
    out = torch.empty_like(a)
    flag = torch.zeros(1, dtype=torch.int32, device=a.device)
    n = a.numel()
    {before}
    fused[(triton.cdiv(n, 1024),)](a, b, out, flag, n, {far}, BLOCK=1024, num_warps={warps})
    {after}
    return out

class ModelNew(nn.Module):
    def forward(self, a, b):
        global calls
        calls += 1
        {forward}
"""
)
_PLAIN = {
    "top": "",
    "wait": "pass",
    "value": "tl.maximum(a, 0.0) * 2 + b",
    "far": "0",
    "before": "pass",
    "after": "pass",
    "warps": "4",
    "forward": "return launched(a, b)",
}


def fused(**changes):
    """The honest kernel with changes."""
    return FUSED_KERNEL.format(**(_PLAIN | changes))


_SIDE = {
    "before": "torch.cuda.set_stream(torch.cuda.Stream())",
    "after": "torch.cuda.set_stream(torch.cuda.default_stream())",
}
_PATCHES = """
import time
torch.cuda.Event.elapsed_time = lambda *a, **k: 1e-6
torch.cuda.Event.record = lambda *a, **k: None
torch.cuda.synchronize = lambda *a, **k: None
torch.allclose = lambda *a, **k: True
torch.equal = lambda *a, **k: True
time.perf_counter = lambda: 0.0
"""
_FALLBACK = """
        try:
            raise RuntimeError("never works")
            return launched(a, b)
        except RuntimeError:
            return torch.relu(a) * 2 + b
"""
_STALE_WHEN_TIMED = """
        if calls > 150 and "out" in kept:
            return kept["out"]
        kept["out"] = launched(a, b)
        return kept["out"]
"""
_EVERY_15TH = """
        if calls % 15 == 1:
            kept["out"] = launched(a, b)
        return kept["out"]
"""
_BY_POINTER = """
        key = (id(a), a.data_ptr(), b.data_ptr(), a.shape)
        if key not in kept:
            kept[key] = launched(a, b)
        return kept[key]
"""
_RAISES_WHEN_TIMED = """
        if calls > 150:
            raise RuntimeError("not any more")
        return launched(a, b)
"""
_INNOCENT = """
        # cudaStream_t stream: the default one. if False: pass
        if a.numel() == 0:
            pass
        if a.shape[-1] % 1024 == 0:
            return launched(a, b)
        return launched(a, b)
"""

SIDE_MATMUL = (
    HEAD
    + """
class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.mm(a, b, out=out)
        return out
"""
)
TF32_MATMUL = (
    HEAD
    + """
@triton.jit
def product(a_ptr, b_ptr, out_ptr, m, n, k, am, ak, bk, bn, B: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, k, K):
        at = start + tl.arange(0, K)
        a = tl.load(
            a_ptr + rows[:, None] * am + at[None, :] * ak,
            mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
        b = tl.load(
            b_ptr + at[:, None] * bk + cols[None, :] * bn,
            mask=(at[:, None] < k) & (cols[None, :] < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="{precision}")
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :], total,
        mask=(rows[:, None] < m) & (cols[None, :] < n))

class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        n = b.shape[1]
        out = torch.empty(m, n, device=a.device, dtype=a.dtype)
        grid = (triton.cdiv(m, {block}), triton.cdiv(n, {block}))
        product[grid](
            a, b, out, m, n, k, *a.stride(), *b.stride(), B={block}, K={deep},
            num_stages={stages}, num_warps=8)
        return out
"""
)
SOFTMAX_KERNEL = (
    HEAD
    + """
@triton.jit
def rows(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * n + cols, e / tl.sum(e, 0), mask=cols < n)

class ModelNew(nn.Module):
    def forward(self, x):
        if x.stride(-1) != 1:
            x = x.contiguous()
        count, n = x.shape
        out = torch.empty(count, n, device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(n)
        rows[(count,)](x, out, n, x.stride(0), BLOCK=block, num_warps={warps})
        return out
"""
)
AUTOTUNED_SCALE = (
    HEAD
    + """
@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def scaled(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, x * 1.5, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        scaled[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, n)
        return x
"""
)
HALVES = (
    HEAD
    + """
@triton.autotune([triton.Config({"HALF": 0}), triton.Config({"HALF": 1})], key=["n"])
@triton.jit
def half(x_ptr, out_ptr, n, HALF: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mine = (at < n) & ((at >= n // 2) == (HALF == 1))
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mine) + 1, mask=mine)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        half[(1,)](x, out, x.numel(), BLOCK=triton.next_power_of_2(max(2, x.numel())))
        return out
"""
)
GRID = (
    HEAD
    + """
@triton.jit
def doubled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n)
    tl.store(out_ptr + row * n + at, x * 2, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        doubled[(1, x.shape[0])](x, out, x.shape[1], BLOCK=block)
        return out
"""
)
HUGE_COPY = (
    HEAD
    + """
@triton.jit
def copied(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0){wide} * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        copied[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK=4096)
        return out
"""
)
_UNTIMED = {"timed": False}

CASES = (
    Case("honest", "fused relu, scale and add", FUSED, fused(), PROVEN),
    Case("3", "returns memory it never wrote", FUSED, fused(forward="return torch.empty_like(a)"),
         WRONG),
    Case("5", "kernel on a side stream", FUSED, fused(**_SIDE), ("SUSPICIOUS", *WRONG)),
    Case("5", "matmul on a side stream", MATMUL, SIDE_MATMUL, ("SUSPICIOUS", *WRONG)),
    Case("6", "stores far outside", FUSED, fused(far=str(1 << 40)), ("ILLEGAL_ACCESS",)),
    Case("6", "honest after the crash", FUSED, fused(warps="2"), PROVEN),
    Case("7", "never ends", FUSED,
         fused(wait="while tl.load(flag_ptr, volatile=True) == 0: pass"), ("TIMEOUT",),
         bounds={"values_s": 25}),
    Case("7", "honest after the hang", FUSED, fused(warps="8"), PROVEN),
    Case("8", "autotuned in place", SCALE, AUTOTUNED_SCALE, WRONG),
    Case("9", "each configuration writes a half", VECTOR, HALVES, WRONG),
    Case("10", "too much shared memory", MATMUL,
         TF32_MATMUL.format(precision="tf32", block=256, deep=64, stages=5), ("RESOURCES",)),
    Case("15", "70000 rows on grid axis 1", ROWS, GRID, ("LAUNCH",)),
    Case("18", "cache by pointer", FUSED, fused(forward=_BY_POINTER.strip()),
         ("SUSPICIOUS", "ALIASED", *WRONG)),
    Case("19", "computes on every 15th call", FUSED, fused(forward=_EVERY_15TH.strip()),
         ("ALIASED", *WRONG)),
    Case("19", "stops computing when timed", FUSED, fused(forward=_STALE_WHEN_TIMED.strip()),
         ("SUSPICIOUS", *WRONG), unmeasured=True),
    Case("25", "raises when timed", FUSED, fused(forward=_RAISES_WHEN_TIMED.strip()), ("RUNTIME",),
         unmeasured=True),
    Case("27", "copy of the baseline", FUSED, fused(), ("SAME", "AMBIGUOUS"),
         options={"baselines": {"previous": fused()}}),
    Case("28", "TF32 for float32", MATMUL,
         TF32_MATMUL.format(precision="tf32", block=128, deep=32, stages=3), ("NUMERIC",)),
    Case("honest", "matmul in float32", MATMUL,
         TF32_MATMUL.format(precision="ieee", block=64, deep=32, stages=2), PROVEN),
    Case("31", "replaces timers, honest", FUSED, fused(top=_PATCHES), PROVEN,
         warning="elapsed_time was replaced"),
    Case("31", "replaces timers, zeros", FUSED, fused(top=_PATCHES, value="a * 0"), WRONG),
    Case("32", "falls back to the library", FUSED, fused(forward=_FALLBACK.strip()), PROVEN,
         warning="NOT_OWN_KERNEL"),
    Case("32", "the same, library forbidden", FUSED_FORBIDDEN,
         fused(forward=_FALLBACK.strip()), ("NOT_OWN_KERNEL",)),
    Case("honest", "own kernels, library forbidden", FUSED_FORBIDDEN, fused(), PROVEN),
    Case("33", "innocent words", FUSED, fused(forward=_INNOCENT.strip()), PROVEN),
    Case("4", "writes its input", FUSED, fused(after="a.zero_()"), ("MUTATED_INPUT",)),
    Case("honest", "row softmax", SOFTMAX, SOFTMAX_KERNEL.format(warps=8), PROVEN),
    Case("14", "offsets in int32", HUGE, HUGE_COPY.format(wide=""), ("ILLEGAL_ACCESS", *WRONG),
         bounds={"memory_mb": 49152, "values_s": 90, "reference_s": 180}, options=_UNTIMED),
    Case("14", "offsets in int64", HUGE, HUGE_COPY.format(wide=".to(tl.int64)"), ("UNTIMED",),
         bounds={"memory_mb": 49152, "values_s": 90, "reference_s": 180}, options=_UNTIMED),
)  # fmt: skip


def honest_controls():
    """The controls of the tests on the CPU: pairs of a reference and a candidate, by name."""
    path = Path(__file__).resolve().parents[1] / "cases" / "test_honest_controls.py"
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            try:
                pair = ast.literal_eval(node.value)
            except ValueError:
                continue
            if len(pair) == 2 and all(isinstance(part, str) for part in pair):
                found[node.targets[0].id.lower().replace("_", " ")] = pair
    return [
        Case("honest", name, HEAD + reference, HEAD + candidate, PROVEN)
        for name, (reference, candidate) in found.items()
    ]

"""Honest kernels that must be accepted."""

import os

import pytest

FUSED_ADD_RELU = (
    """
class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu(x + y)

def get_inputs():
    return [torch.randn(128, 64), torch.randn(128, 64)]

def get_init_inputs():
    return []
""",
    """
@triton.jit
def add_relu(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x + y, 0.0), mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        add_relu[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        return out
""",
)

RMS_BF16 = (
    """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))

    def forward(self, x):
        wide = x.to(torch.float32)
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (wide * scale).to(x.dtype)

def get_inputs():
    return [torch.randn(64, 256).to(torch.bfloat16)]

def get_init_inputs():
    return [256]
""",
    """
@triton.jit
def rms(x_ptr, w_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, 0) / n_cols + 1e-6)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, (x * scale * w).to(tl.bfloat16), mask=mask)

class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))

    def forward(self, x):
        x = x.contiguous()
        n = x.shape[-1]
        out = torch.empty_like(x)
        rms[(x.numel() // n,)](x, self.weight, out, n, BLOCK=triton.next_power_of_2(n))
        return out
""",
)

TWO_OUTPUTS = (
    """
class Model(nn.Module):
    def forward(self, x):
        values, places = x.max(dim=1)
        return values, places

def get_inputs():
    return [torch.randint(0, 9, (40, 50)).float()]

def get_init_inputs():
    return []
""",
    """
@triton.jit
def row_max(x_ptr, value_ptr, place_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    top = tl.max(x, 0)
    # The last of equal values: another one than the library's.
    place = tl.max(tl.where(x == top, cols, -1), 0)
    tl.store(value_ptr + row, top)
    tl.store(place_ptr + row, place.to(tl.int64))

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        values = torch.empty(rows, device=x.device, dtype=x.dtype)
        places = torch.empty(rows, device=x.device, dtype=torch.int64)
        row_max[(rows,)](x, values, places, cols, BLOCK=triton.next_power_of_2(cols))
        return values, places
""",
)

INTEGERS_AND_BOOLEANS = (
    """
class Model(nn.Module):
    def forward(self, x, keep, bucket):
        return torch.where(keep, x, torch.zeros_like(x)) + bucket

def get_inputs():
    return [torch.randn(30, 40), torch.rand(30, 40) > 0.5, torch.randint(0, 7, (30, 40))]

def get_init_inputs():
    return []
""",
    """
@triton.jit
def masked(x_ptr, keep_ptr, bucket_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    keep = tl.load(keep_ptr + at, mask=mask)
    bucket = tl.load(bucket_ptr + at, mask=mask)
    tl.store(out_ptr + at, tl.where(keep, x, 0.0) + bucket.to(tl.float32), mask=mask)

class ModelNew(nn.Module):
    def forward(self, x, keep, bucket):
        x, keep, bucket = x.contiguous(), keep.contiguous(), bucket.contiguous()
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 512),)
        masked[grid](x, keep, bucket, out, x.numel(), BLOCK=512)
        return out
""",
)

ATOMICS = (
    """
TASK = {"atomics_bound": 1e-4}

class Model(nn.Module):
    def forward(self, x):
        return x.sum(0)

def get_inputs():
    return [torch.randn(200, 48)]

def get_init_inputs():
    return []
""",
    """
@triton.jit
def add_rows(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + cols, tl.sum(x, 0), mask=cols < n_cols)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.zeros(cols, device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(max(1, cols))
        if rows and cols:
            add_rows[(triton.cdiv(rows, 16),)](x, out, rows, cols, ROWS=16, BLOCK=block)
        return out
""",
)

PACKED_WEIGHTS = (
    """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 24, bias=False)
        self.up = nn.Linear(width, 24, bias=False)
        self.register_buffer("offset", torch.linspace(0, 1, 24))

    def forward(self, x):
        return F.silu(self.gate(x)) * self.up(x) + self.offset

def get_inputs():
    return [torch.randn(20, 32)]

def get_init_inputs():
    return [32]
""",
    """
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 24, bias=False)
        self.up = nn.Linear(width, 24, bias=False)
        self.register_buffer("offset", torch.linspace(0, 1, 24))
        self.packed = torch.cat([self.gate.weight, self.up.weight]).detach()

    def forward(self, x):
        gate, up = (x @ self.packed.t()).chunk(2, dim=-1)
        return F.silu(gate) * up + self.offset
""",
)

LIBRARY_FOR_ONE = (
    """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 40)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(24, 32)]

def get_init_inputs():
    return [32]
""",
    """
from operator_file import Model

@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)

class ModelNew(Model):
    @classmethod
    def from_reference(cls, model):
        new = cls.__new__(cls)
        new.__dict__.update(model.__dict__)
        return new

    def forward(self, x):
        y = F.linear(x, self.linear.weight, self.linear.bias).contiguous()
        out = torch.empty_like(y)
        relu_kernel[(triton.cdiv(y.numel(), 256),)](y, out, y.numel(), BLOCK=256)
        return out
""",
)

STRIDED_COPY = (
    """
class Model(nn.Module):
    def forward(self, x):
        return x.t().contiguous()

def get_inputs():
    return [torch.randn(50, 70)]

def get_init_inputs():
    return []
""",
    """
@triton.jit
def transpose(x_ptr, out_ptr, rows, cols, row_stride, col_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (i[:, None] < rows) & (j[None, :] < cols)
    x = tl.load(x_ptr + i[:, None] * row_stride + j[None, :] * col_stride, mask=mask)
    tl.store(out_ptr + j[None, :] * rows + i[:, None], x, mask=mask)

class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(cols, rows, device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(rows, 32), triton.cdiv(cols, 32))
        transpose[grid](x, out, rows, cols, *x.stride(), BLOCK=32)
        return out
""",
)

BATCH_NORM_IN_TRAINING = (
    """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.randn(40, 12)]

def get_init_inputs():
    return [12]
""",
    """
from operator_file import Model

class ModelNew(Model):
    def forward(self, x):
        norm = self.norm
        with torch.no_grad():
            mean, variance = x.mean(0), x.var(0, unbiased=False)
            n = x.shape[0]
            norm.num_batches_tracked += 1
            norm.running_mean.mul_(0.9).add_(mean * 0.1)
            norm.running_var.mul_(0.9).add_(variance * (n / (n - 1)) * 0.1)
        return (x - mean) / torch.sqrt(variance + norm.eps) * norm.weight + norm.bias
""",
)

SOFTMAX_AT_WIDTHS = (
    """
TASK = {"shapes": [[(8, 129)], [(8, 1)], [(8, 127)], [(8, 128)]]}

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

def get_inputs():
    return [torch.randn(8, 129)]

def get_init_inputs():
    return []
""",
    """
@triton.jit
def softmax(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * n_cols + cols, e / tl.sum(e, 0), mask=cols < n_cols)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, cols = x.shape
        if rows and cols:
            softmax[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
""",
)

IN_PLACE = (
    """
TASK = {"inplace": True}

class Model(nn.Module):
    def forward(self, x, y):
        return x.add_(y, alpha=0.5)

def get_inputs():
    return [torch.randn(30, 41), torch.randn(30, 41)]

def get_init_inputs():
    return []
""",
    """
@triton.jit
def add_half(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(x_ptr + at, x + 0.5 * y, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x, y):
        if not x.is_contiguous():
            return x.add_(y, alpha=0.5)
        y = y.contiguous()
        add_half[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return x
""",
)

TILED_MATMUL = (
    """
class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(48, 80), torch.randn(80, 33)]

def get_init_inputs():
    return []
""",
    """
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inside = k + depth
        a_mask = (rows[:, None] < M) & (inside[None, :] < K)
        b_mask = (inside[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inside[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inside[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=mask)

class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty(m, n, device=a.device, dtype=a.dtype)
        if m and n:
            grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
            matmul[grid](a, b, out, m, n, k, BM=32, BN=32, BK=16)
        return out
""",
)

LAYER_NORM_OF_SOFTMAX = (
    """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(torch.softmax(x, -1))

def get_inputs():
    return [torch.randn(24, 45)]

def get_init_inputs():
    return [45]
""",
    """
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        e = torch.exp(x - x.amax(-1, keepdim=True))
        p = e * (1 / e.sum(-1, keepdim=True))
        mean = p.sum(-1, keepdim=True) * (1 / p.shape[-1])
        variance = ((p - mean) ** 2).sum(-1, keepdim=True) * (1 / p.shape[-1])
        scaled = (p - mean) * torch.rsqrt(variance + self.norm.eps)
        return scaled * self.norm.weight + self.norm.bias
""",
)

BASELINE_ITSELF = (
    RMS_BF16[0],
    """
from operator_file import Model

class ModelNew(Model):
    pass
""",
)

CONTROLS = {
    "fused add and relu": FUSED_ADD_RELU,
    "softmax with a tail mask": SOFTMAX_AT_WIDTHS,
    "rms norm in bf16": RMS_BF16,
    "two outputs with ties": TWO_OUTPUTS,
    "integers and booleans": INTEGERS_AND_BOOLEANS,
    "atomics": ATOMICS,
    "packed weights": PACKED_WEIGHTS,
    "library for one operator": LIBRARY_FOR_ONE,
    "strided copy": STRIDED_COPY,
    "batch norm in training": BATCH_NORM_IN_TRAINING,
    "in place, as declared": IN_PLACE,
    "tiled matmul": TILED_MATMUL,
    "layer norm of a softmax": LAYER_NORM_OF_SOFTMAX,
    "the baseline itself": BASELINE_ITSELF,
}
SEEDS = range(3)
SOAK_SEEDS = int(os.environ.get("MTMC_SOAK_SEEDS", "100"))


@pytest.mark.parametrize("name", CONTROLS)
def test_accepted(court, name):
    for seed in SEEDS:
        verdict = court.verdict(*CONTROLS[name], seed=seed)
        assert verdict.verdict == "UNTIMED", (seed, verdict.reason)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_accepted_under_many_seeds(court):
    accused = {}
    for name, control in CONTROLS.items():
        for seed in range(SOAK_SEEDS):
            verdict = court.verdict(*control, seed=seed)
            if verdict.verdict != "UNTIMED":
                accused[name, seed] = f"{verdict.verdict}: {verdict.reason}"
        print(f"{name:<28}{SOAK_SEEDS:>5} seeds, rejected {sum(n == name for n, _ in accused)}")
    assert not accused


def test_a_helper_beside_the_candidate(court):
    reference = """
    def doubled(x):
        return x * 2

    def inputs():
        return [torch.randn(77)]
    """
    candidate = """
    from helper_beside import launch

    def doubled(x):
        return launch(x.contiguous())
    """
    helper = """
    @triton.jit
    def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)

    def launch(x):
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
    """
    verdict = court.verdict(reference, candidate, files={"helper_beside.py": helper})
    assert verdict.verdict == "UNTIMED", verdict.reason


def test_buffers_that_are_not_updated_are_found(court):
    reference, candidate = BATCH_NORM_IN_TRAINING
    stale = candidate.replace("norm.running_var.mul_(0.9).add_(variance * (n / (n - 1)) * 0.1)", "")
    verdict = court.verdict(reference, stale)
    assert verdict.verdict == "STATE_DRIFT"
    assert "running_var" in verdict.reason

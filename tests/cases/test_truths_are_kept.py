"""The reference is asked once for each case, whatever block sizes a candidate has."""

from mtmc_engine.proof.work_names import TRUTH

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)

def get_inputs():
    return [torch.randn(20, 50)]

def get_init_inputs():
    return []
"""

SOFTMAX = """
@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=inside, other=-float("inf"))
    x = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(out_ptr + rows * n_cols + cols, x / tl.sum(x, 1)[:, None]{wrong}, mask=inside)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            grid = (triton.cdiv(x.shape[0], {rows}),)
            block = triton.next_power_of_2(x.shape[1])
            softmax_kernel[grid](x, out, *x.shape, ROWS={rows}, BLOCK=block)
        return out
"""


def test_only_new_shapes_are_asked_for(court, monkeypatch):
    asked = []
    run = court.workshop.device.run

    async def watched(function, arguments, *given, **named):
        if function == TRUTH:
            asked.append([case["name"] for case in arguments["cases"]])
        return await run(function, arguments, *given, **named)

    monkeypatch.setattr(court.workshop.device, "run", watched)
    for rows in (4, 8, 8):
        found = court.verdict(REFERENCE, SOFTMAX.format(rows=rows, wrong=""))
        assert found.verdict == "UNTIMED", found.reason
    first, second = asked
    assert {"20x50", "19x50, negated", "19x50, transposed"} <= set(first)
    assert second
    assert all("," not in name for name in second)
    assert not set(first) & set(second)
    found = court.verdict(REFERENCE, SOFTMAX.format(rows=16, wrong=" + 1e-3"))
    assert found.verdict == "NUMERIC", found.reason

"""Inputs that the file itself makes transposed, sliced or expanded reach the candidate as such."""

import pytest

REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        return {result}

def get_inputs():
    return [{made}]

def get_init_inputs():
    return []
"""

ROW_SUMS = """
@triton.jit
def row_sums(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + at, mask=at < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, 0))

class ModelNew(nn.Module):
    def forward(self, x):
        {prepare}
        out = torch.zeros(x.shape[0], device=x.device)
        if x.numel():
            block = triton.next_power_of_2(x.shape[1])
            row_sums[(x.shape[0],)](x, out, x.shape[1], BLOCK=block)
        return out
"""

MADE = {
    "transposed": "torch.randn(40, 24).t()",
    "every other column": "torch.randn(24, 80)[:, ::2]",
    "one row for all": "torch.randn(1, 40).expand(24, 40)",
}


@pytest.mark.case(12)
@pytest.mark.parametrize("made", MADE)
def test_rows_that_do_not_follow_each_other(court, made):
    reference = REFERENCE.format(result="x.sum(-1)", made=MADE[made])
    found = court.verdict(reference, ROW_SUMS.format(prepare="pass"))
    assert found.verdict in ("NUMERIC", "NONFINITE"), found.reason  # it reads past the end
    assert found.evidence["case"] == "24x40"
    found = court.verdict(reference, ROW_SUMS.format(prepare="x = x.contiguous()"))
    assert found.verdict == "UNTIMED", found.reason


def test_a_loud_refusal_of_layouts_that_nobody_declared_is_a_warning(court):
    source = """
    class ModelNew(nn.Module):
        def forward(self, x):
            return (x.view(-1) * 2).view(x.shape)
    """
    found = court.verdict(REFERENCE.format(result="x * 2", made="torch.randn(24, 40)"), source)
    assert found.verdict == "UNTIMED", found.reason
    assert any("fails on transposed input" in warning for warning in found.warnings)
    found = court.verdict(REFERENCE.format(result="x * 2", made=MADE["transposed"]), source)
    assert found.verdict == "RUNTIME", found.reason


@pytest.mark.case(13)
@pytest.mark.parametrize("made", MADE)
def test_a_contiguous_result_is_told_and_accepted(court, made):
    """PyTorch's own operators keep the strides of some inputs and not of others."""
    reference = REFERENCE.format(result="x * 2", made=MADE[made])
    source = """
    class ModelNew(nn.Module):
        def forward(self, x):
            return (x.contiguous() * 2).contiguous()
    """
    found = court.verdict(reference, source)
    assert found.verdict == "UNTIMED", found.reason
    if made == "transposed":
        assert any("the file's own inputs the strides" in told for told in found.warnings)

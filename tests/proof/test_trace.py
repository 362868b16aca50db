"""Whose kernels a trace shows, and what follows for the verdict."""

import pytest

from mtmc_engine.core.task import Policy
from mtmc_engine.core.verdict import Class
from mtmc_engine.proof.gates.integrity import _by_trace
from mtmc_engine.proof.gates.proof import Proof
from mtmc_engine.proof.work.trace import sorted_out

GEMM = "nvjet_sm90_tss_128x256_64x4_2x1_v_bz_coopA_TNT"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::relu<float> >(int)"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(…)>"


class Task:
    def __init__(self, library):
        self.policy = Policy(library=library)


class Subject:
    def __init__(self, library):
        self.task = Task(library)


def outcome(found, own=("fused",), library="allow"):
    proof = Proof(Subject(library), None, lambda progress: None, None)
    return proof, _by_trace(proof, sorted_out(found, own), {})


def test_kernels_are_told_apart():
    trace = sorted_out(
        {"fused": 3.0, GEMM: 5.0, RELU: 1.0, COPY: 9.0, "Memset (Device)": 2.0}, ("fused",)
    )
    assert trace.own == {"fused": 3.0}
    assert set(trace.other) == {GEMM, RELU}
    assert trace.share == pytest.approx(3 / 9)


def test_inline_cuda_is_its_own():
    assert sorted_out({"my_kernel(float*, int)": 1.0}, ()).own


def test_what_torch_compile_makes_is_not():
    assert not sorted_out({"triton_poi_fused_relu_0": 1.0}, ()).own


def test_own_kernels_pass_under_every_policy():
    for library in ("allow", "forbid", 0.9):
        proof, found = outcome({"fused": 3.0, COPY: 1.0}, library=library)
        assert found.verdict is None
        assert not proof.warnings


def test_a_fallback_is_a_notice_where_the_library_is_allowed():
    proof, found = outcome({RELU: 3.0})
    assert found.verdict is None
    assert proof.warnings[0].startswith("NOT_OWN_KERNEL")


@pytest.mark.parametrize("library", ["forbid", 0.5])
def test_a_fallback_is_rejected_where_it_is_not(library):
    _, found = outcome({RELU: 3.0}, library=library)
    assert found.verdict is Class.NOT_OWN_KERNEL


def test_a_decoration_counts_as_none():
    proof, _ = outcome({"fused": 0.01, GEMM: 5.0})
    assert "0.2%" in proof.warnings[0]


def test_the_least_share_of_a_policy():
    _, enough = outcome({"fused": 3.0, GEMM: 2.0}, library=0.5)
    _, few = outcome({"fused": 2.0, GEMM: 3.0}, library=0.5)
    assert enough.verdict is None
    assert few.verdict is Class.NOT_OWN_KERNEL

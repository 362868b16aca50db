"""Estimates in the place of measurements."""

import pytest
from test_variants import LARGE, task_of

from mtmc_engine.core.program import ByHand, Group, Library, Schedule
from mtmc_engine.proof.subject import Subject
from mtmc_engine.proof.timing.estimate import estimated

SOURCE = """
@triton.jit
def own_kernel(x_ptr): ...


def relu(x): ...
"""


@pytest.mark.parametrize(
    ("launched", "as_fast_as_the_library"),
    [({"own_kernel": 3}, False), ({"another": 1}, True), ({}, True)],
)
def test_code_whose_kernels_never_ran_is_as_slow_as_the_library(launched, as_fast_as_the_library):
    def time_of(form):
        schedule = Schedule((Group("r1", ("out",), form),))
        subject = Subject(task_of(LARGE), "", "n1", "/tmp", schedule=schedule)
        return estimated(subject, launched).time_us

    by_hand, library = time_of(ByHand(SOURCE)), time_of(Library())
    assert (by_hand == library) is as_fast_as_the_library

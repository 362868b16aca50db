"""Every worked example of every prompt file is real: it is read as a reply, compiled and proven."""

from __future__ import annotations

import pytest
from example_court import ExampleCourt

from mtmc_engine.coder.llm.feedback import feedback_of
from mtmc_engine.coder.llm.reply import Code, read_reply
from mtmc_engine.coder.llm.specification import kinds, specification

pytestmark = pytest.mark.slow

# What the shortest evidence of the real judge must hold.
FACT = {
    "COMPILE": "^ ",
    "RESOURCES": "bytes of shared memory",
    "ILLEGAL_ACCESS": "past its end",
    "NUMERIC": "expected ",
}
EXAMPLES = [
    pytest.param(example, id=f"{kind}-{number}")
    for kind in kinds()
    for number, example in enumerate(specification(kind).examples, start=1)
]


@pytest.fixture(scope="module")
def court(tmp_path_factory):
    court = ExampleCourt(tmp_path_factory.mktemp("examples"))
    yield court
    court.close()


def entry(example):
    return example.reference.split("def ")[1].split("(")[0]


def file_of(example):
    return f"{example.reference}\n\ndef inputs():\n    return {example.inputs}\n"


def answered(example):
    found = read_reply(
        example.answer, "stop", example.before.strip("\n") or None, entry=entry(example)
    )
    assert isinstance(found, Code), found
    return found.source


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_answer_is_proven(court, example):
    verdict = court.verdict(file_of(example), answered(example))
    assert verdict.proven, verdict.reason
    assert not [warning for warning in verdict.warnings if "NOT_OWN" in warning] or (
        "triton" not in answered(example)
    )


FAULTY = [p for p in EXAMPLES if p.values[0].verdict]
OTHERS = [p for p in EXAMPLES if p.values[0].before and p not in FAULTY]


@pytest.mark.parametrize("example", FAULTY)
def test_a_program_to_repair_has_the_fault_that_its_answer_corrects(court, example):
    verdict = court.verdict(file_of(example), example.before)
    assert verdict.verdict == example.verdict, verdict.reason
    learnt = feedback_of(verdict, example.before)
    assert specification(learnt.repair).examples.count(example) == 1
    assert FACT[example.verdict] in " ".join(learnt.facts)
    assert sum(map(len, learnt.facts)) <= 1600


@pytest.mark.soak
@pytest.mark.parametrize("example", OTHERS)
def test_the_program_before_is_proven_too(court, example):
    verdict = court.verdict(file_of(example), example.before)
    assert verdict.proven, verdict.reason

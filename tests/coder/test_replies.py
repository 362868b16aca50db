"""Replies: code where there is code, its reason where there is none, and never half of a change."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from recorded_replies import ALL_IMPORTS, BEFORE, recorded, table

from mtmc_engine.coder.llm.reply import Code, NoCode, read_reply

REPLIES = {reply.name: reply for reply in recorded()}


def defined(source):
    return {node.name for node in ast.parse(source).body if hasattr(node, "name")}


def test_the_documented_table_is_what_becomes_of_them():
    documented = Path(__file__).parents[2] / "docs" / "replies.md"
    assert documented.read_text() == f"{table()}\n"


def test_there_are_many_shapes():
    assert len(REPLIES) >= 25
    assert {reply.outcome for reply in REPLIES.values()} == {
        *("code", "empty", "thinking", "length", "filtered", "unusable")
    }


@pytest.mark.case(20)
@pytest.mark.parametrize("name", REPLIES)
def test_each_recorded_reply_has_its_outcome(name):
    reply = REPLIES[name]
    found = reply.read()
    outcome = "code" if isinstance(found, Code) else found.kind
    assert outcome == reply.outcome, found
    if isinstance(found, Code):
        assert "ModelNew" in defined(found.source)
        assert not found.source.lstrip().lower().startswith("python")
        assert "```" not in found.source
        assert "\r" not in found.source
    else:
        assert found.reason.endswith(".")


@pytest.mark.parametrize("name", [n for n, r in REPLIES.items() if r.outcome == "code"])
def test_code_has_all_that_it_names(name):
    """Imports that were forgotten, kernels from another fence: the module is whole."""
    source = REPLIES[name].read().source
    compile(source, name, "exec")
    for word in ("import torch\n", "import triton\n", "import triton.language as tl\n"):
        assert source.count(word) == 1
    assert source.count("from op import Model\n") == 1
    assert "def relu_kernel(" in source
    assert "def relu(" in source


@pytest.mark.parametrize("name", [n for n in REPLIES if n.startswith("whole_")])
def test_a_whole_file_is_taken_word_for_word(name):
    found = REPLIES[name].read()
    if isinstance(found, Code):
        assert "BLOCK_SIZE=2048" in found.source
        assert "BLOCK_SIZE=512" not in found.source


@pytest.mark.parametrize(
    "name", [n for n, r in REPLIES.items() if n.startswith("blocks_") and r.outcome == "code"]
)
def test_a_block_changes_its_lines_and_no_others(name):
    after = REPLIES[name].read().source.splitlines()
    before = BEFORE.splitlines()
    assert len(after) == len(before)
    changed = [at for at, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert after[24] == (
        "    relu_kernel[(triton.cdiv(n_elements, 4096),)]"
        "(x, out, n_elements, BLOCK_SIZE=4096, num_warps=8)"
    )
    assert changed in ([24], [14, 24])


def reason(name):
    found = REPLIES[name].read()
    assert isinstance(found, NoCode)
    return found.reason


def test_a_refused_block_says_which_one_and_why():
    assert "block 1 was not found" in reason("blocks_missing")
    assert "line 25 reads" in reason("blocks_missing")
    assert "block 1 fits 2 places (lines 20, 40)" in reason("blocks_ambiguous")
    assert "block 2 was not found" in reason("blocks_second_missing")
    assert "block 1 has no last line" in reason("blocks_unfinished")
    assert "does not say which lines" in reason("blocks_empty_search")
    assert "line 14" in reason("blocks_break_syntax")
    assert "as it was" in reason("blocks_change_nothing")


def test_what_is_no_answer_is_told_apart():
    assert reason("thinking_only") == "The model used its whole budget for thinking."
    assert reason("thinking_tags_only") == "The model used its whole budget for thinking."
    assert reason("thinking_then_nothing") == "The model thought and gave no answer."
    assert reason("empty") == "The model gave an empty answer."
    assert "cut off at its token limit" in reason("blocks_cut")
    assert "content filter" in reason("content_filter")
    assert "diff" in reason("diff")
    assert "does not define ModelNew" in reason("wrong_entry")
    assert "line 16" in reason("not_python")


def test_an_instruction_in_a_reply_is_only_text():
    source = REPLIES["injected"].read().source
    assert "OPENAI_API_KEY" not in source
    assert "FASTER" not in source


def test_blocks_need_a_program():
    found = read_reply(REPLIES["blocks_plain"].text, "stop", None)
    assert isinstance(found, NoCode)
    assert "no program yet" in found.reason


def test_an_entry_may_be_a_function():
    text = "```python\ndef double(x):\n    return tl.sum(x)\n```"
    found = read_reply(text, "stop", None, entry="double", imports=ALL_IMPORTS)
    assert found == Code(
        "import triton.language as tl\ndef double(x):\n    return tl.sum(x)\n",
        ("The answer's imports lacked tl.",),
    )


def test_forgotten_imports_go_after_the_docstring():
    code = '"""Doc."""\n\nfrom __future__ import annotations\n\nModelNew = nn.Linear\n'
    found = read_reply(f"```python\n{code}```", "stop", None)
    assert isinstance(found, Code)
    assert found.source == (
        '"""Doc."""\n\nfrom __future__ import annotations\n\nfrom torch import nn\n\n'
        "ModelNew = nn.Linear\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "```python\n" + "(" * 5000 + "\nclass ModelNew: pass\n```",
        "class ModelNew:\n" + "    x = 1\n" * 4_000 + "prose that follows\n" * 50,
        "<<<<<<< SEARCH\n" * 1000,
        "```\n" * 3001,
        "<think>" * 2000,
        "\0class ModelNew: pass",
        '{"code": 3}',
        "[]",
        "[" * 100_000,
        "=======",
        ">>>>>>> REPLACE",
    ],
)
def test_a_hostile_reply_is_answered_and_soon(text):
    assert isinstance(read_reply(text, "stop", BEFORE), Code | NoCode)

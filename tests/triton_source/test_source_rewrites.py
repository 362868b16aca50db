"""Regions and rewrites of Triton source: names that stay, bytes that stay, clean refusals."""

import ast
import io
import itertools
import tokenize

import libcst as cst
import pytest

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import ByHand
from mtmc_engine.schedule.source.code import code_of, walk
from mtmc_engine.schedule.source.regions import source_schedule
from tests.triton_source.source_cases import FILES, named, rewrites

ALL = [
    pytest.param(name, kind, at, id=f"{name} {kind} {rewrite.place} {rewrite.words}")
    for name, path in FILES.items()
    for at, (kind, rewrite) in enumerate(rewrites(path.read_text()))
]


def test_regions_are_numbered_as_they_are_written():
    schedule = source_schedule(FILES["grouped_matmul"].read_text())
    assert [(r.id, r.label) for r in schedule.regions] == [
        ("r1", "matmul_kernel"),
        ("r2", "loop over k"),
        ("r3", "load a"),
        ("r4", "load b"),
        ("r5", "dot"),
        ("r6", "launch matmul_kernel"),
    ]
    assert [r.line for r in schedule.regions] == sorted(r.line for r in schedule.regions)


def test_every_launched_kernel_is_a_group_by_hand():
    text = FILES["two_stages"].read_text()
    schedule = source_schedule(text)
    assert [group.region for group in schedule.groups] == ["r1", "r3"]
    assert all(group.form == ByHand(text) for group in schedule.groups)


def test_loads_are_named_by_the_pointer_they_come_from():
    text = """
import triton
import triton.language as tl

@triton.jit
def k(in_ptr, table_ptr, out_ptr, n, B: tl.constexpr):
    here = in_ptr + tl.program_id(0) * n
    offs = tl.arange(0, B)
    a = tl.load(here + offs)
    block = tl.make_block_ptr(table_ptr, (n,), (1,), (0,), (B,), (0,))
    block = tl.advance(block, (B,))
    b = tl.load(block)
    while tl.load(out_ptr) == 0:
        pass
    tl.store(out_ptr + offs, a + b)

def launch(x, t, y):
    k[(1,)](x, t, y, 8, B=16)
"""
    labels = [region.label for region in source_schedule(text).regions]
    assert labels == ["k", "load in", "load table", "while loop", "load out", "launch k"]


@pytest.mark.parametrize(("name", "kind", "at"), ALL)
def test_what_is_not_touched_stays(name, kind, at):
    text = FILES[name].read_text()
    rewrite = rewrites(text)[at][1]
    code, edits = code_of(text), rewrite.edits()
    after = rewrite.source()
    ast.parse(after)
    assert after != text
    touched = set()
    for edit in edits:
        first = code.data.count(b"\n", 0, edit.start)
        last = code.data.count(b"\n", 0, max(edit.start, edit.end - 1))
        is_insertion = edit.start == edit.end and edit.text.endswith("\n")
        touched |= set() if is_insertion else set(range(first, last + 1))
    lines = iter(after.splitlines())
    for number, line in enumerate(text.splitlines()):
        if number not in touched:
            assert line in lines, f"line {number + 1} is gone: {line}"
    kept = [c for c, row in comments(text) if row - 1 not in touched]
    assert set(kept) <= {c for c, _ in comments(after)}


def comments(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(t.string, t.start[0]) for t in tokens if t.type == tokenize.COMMENT]


@pytest.mark.parametrize(("name", "kind", "at"), ALL)
def test_names_of_regions_stay(name, kind, at):
    text = FILES[name].read_text()
    before = source_schedule(text)
    after = source_schedule(rewrites(text)[at][1].source(), before.regions)
    known = {region.place: region.id for region in before.regions}
    assert len({region.id for region in after.regions}) == len(after.regions)
    for region in after.regions:
        if region.place in known:
            assert region.id == known[region.place]
        else:
            assert int(region.id[1:]) > len(before.regions)


@pytest.mark.parametrize("name", FILES)
def test_phrases_are_short(name):
    for kind, rewrite in rewrites(FILES[name].read_text()):
        assert len(f"{kind} r1 {rewrite.words}".split()) <= 5
        assert rewrite.reason.endswith(".")


def test_a_new_loop_is_numbered_behind_the_others():
    text = FILES["vector_add"].read_text()
    before = source_schedule(text)
    changed = text.replace(
        "    output = x + y\n", "    for i in range(2):\n        y += x\n    output = x + y\n"
    )
    after = source_schedule(changed, before.regions)
    assert [r.id for r in after.regions] == ["r1", "r2", "r3", "r5", "r4"]


def test_text_before_a_change_may_be_any_unicode():
    text = (
        FILES["vector_add"]
        .read_text()
        .replace("as most", "as 大部分 of the \u00e9l\u00e8ves, most")
    )
    after = named(text, "retile", "to 512").source()
    assert after == text.replace("BLOCK_SIZE=256)", "BLOCK_SIZE=512)")


def test_form_feeds_shift_nothing():
    """Between functions, at the beginning of a line and within one."""
    text = ADD.replace("@triton.jit", "\f\n\f@triton.jit").replace("    pid =", "\f    pid =\f")
    code = code_of(text)
    names = [node for node in walk(code.module) if isinstance(node, cst.Name)]
    assert [code.of(name) for name in names] == [name.value for name in names]
    after = named(text, "retile", "to 512").source()
    assert after == text.replace("BLOCK_SIZE=256", "BLOCK_SIZE=512")


def test_steps_follow_one_another():
    text = FILES["scalar_norm"].read_text()
    text = named(text, "primitive", place="norm_kernel/loop over i 1").source()
    text = named(text, "primitive", place="norm_kernel/loop over i 2").source()
    assert not [kind for kind, _ in rewrites(text) if kind == "primitive"]
    assert text.count("lanes = tl.arange(0, 1024)") == 1
    text = named(text, "vectorize", "unmasked").source()
    text = named(text, "retile").source()
    ast.parse(named(text, "autotune").source())


def test_a_product_takes_all_its_steps():
    text = FILES["matmul_bias_gelu"].read_text()
    for kind, words in (
        ("reorder", "by 8"),
        ("retile", "to 128x128"),
        ("pipeline", "with 4 stages"),
    ):
        text = named(text, kind, words).source()
    text = named(text, "autotune").source()
    assert not [kind for kind, _ in rewrites(text) if kind in ("retile", "pipeline", "autotune")]
    after = named(text, "vectorize", "unmasked").source()
    assert after.index("@triton.autotune(") < after.index("@triton.heuristics(")
    assert 'args["M"] % args["BLOCK_M"] == 0' in after


def test_what_is_written_in_place_is_restored_between_measurements():
    after = named(FILES["in_place_scale"].read_text(), "autotune").source()
    assert 'restore_value=["x_ptr"]' in after
    aliased = FILES["vector_add"].read_text().replace("[grid](x, y, output", "[grid](x, y, x")
    assert 'restore_value=["output_ptr"]' in named(aliased, "autotune").source()


def test_products_of_float32_stay_exact_unless_tf32_is_allowed():
    text = FILES["pairwise_product"].read_text()
    assert 'tl.dot(a, b, input_precision="ieee")' in named(text, "primitive").source()
    relaxed = [r for kind, r in rewrites(text, strict=False) if kind == "primitive"]
    assert "tl.dot(a, b)" in relaxed[0].source()


def test_a_syntax_error_is_said():
    with pytest.raises(UsageError, match="Line 2 of the program"):
        code_of("x = 1\ny = = 2\n")


ADD = FILES["vector_add"].read_text()
MATMUL = FILES["grouped_matmul"].read_text()
TILED = FILES["matmul_bias_gelu"].read_text()
NORM = FILES["scalar_norm"].read_text()
ROWS = FILES["add_rms_norm"].read_text()
# A source, what is changed in it, and the steps that must not be offered for it.
REFUSED = {
    "computed block": (ADD, "BLOCK_SIZE=256", "BLOCK_SIZE=triton.next_power_of_2(n_elements)", "retile, autotune"),
    "starred arguments": (ADD, "[grid](x, y, output, n_elements,", "[grid](*[x, y, output, n_elements],", "retile, pipeline, autotune, vectorize"),
    "grid of one": (ADD, "(triton.cdiv(n_elements, meta['BLOCK_SIZE']), )", "(385,)", "retile, autotune, vectorize:unmasked"),
    "grid rounded down": (ADD, "triton.cdiv(n_elements, meta['BLOCK_SIZE'])", "n_elements // meta['BLOCK_SIZE']", "retile, autotune, vectorize:unmasked"),
    "grid of another size": (ADD, "triton.cdiv(n_elements,", "triton.cdiv(n_elements + 7,", "vectorize:unmasked"),
    "more programs than blocks": (ADD, "triton.cdiv(n_elements, meta['BLOCK_SIZE'])", "2 * triton.cdiv(n_elements, meta['BLOCK_SIZE'])", "vectorize:unmasked"),
    "offsets shifted": (ADD, "pid * BLOCK_SIZE\n", "pid * BLOCK_SIZE + 1\n", "vectorize:unmasked"),
    "atomics": (ADD, "tl.store(output_ptr + offsets, output, mask=mask)", "tl.atomic_add(output_ptr + offsets, output, mask=mask)", "autotune"),
    "block used for memory": (ADD, "output = torch.empty_like(x)", "B = 256\n    output = torch.empty(x.numel() // B * B)", "retile, autotune"),
    "tuned already": (ADD, "@triton.jit", "@triton.autotune([triton.Config({}, num_warps=8)], key=[])\n@triton.jit", "retile, pipeline, autotune"),
    "warps from a variable": (ADD, "BLOCK_SIZE=256", "BLOCK_SIZE=256, num_warps=warps()", "pipeline:with, autotune"),
    "loop that drops a rest": (ROWS, "range(0, n_cols, BLOCK)", "range(0, n_cols // BLOCK * BLOCK, BLOCK)", "vectorize:unmasked"),
    "mask against another size": (ROWS, "mask = cols < n_cols", "mask = cols < n_cols - 1", "vectorize:unmasked"),
    "loop with a store": (NORM, "  # one by one", "\n        tl.store(out_ptr + i, mean_of(i))", "primitive@loop over i 1"),
    "counter as a value": (NORM, "total += tl.load(x_ptr + i).to(tl.float32)", "total += tl.load(x_ptr + i) * i", "primitive@loop over i 1"),
    "last value read later": (NORM, "    scale = 1", "    tl.store(out_ptr, d)\n    scale = 1", "primitive@loop over i 2"),
    "blocks in the loop": (NORM, "row = tl.program_id(0)", "row = tl.program_id(0) + tl.arange(0, 2)", "primitive@loop"),
    "recurrence": (NORM, "square = square + d * d", "square = square * 0.5 + d * d", "primitive@loop over i 2"),
    "integer sum": (NORM, "total = 0.0", "total = 0", "primitive@loop over i 1"),
    "early use of a program number": (TILED, "    pid_n = tl.program_id(1)", "    first = pid_m * 2\n    pid_n = tl.program_id(1)", "reorder"),
    "one axis": (TILED, "pid_n = tl.program_id(1)", "pid_n = 0", "reorder"),
    "no product": (TILED, "tl.dot(a, b)", "a + b", "reorder"),
    "size bound again": (ADD, "    grid = lambda meta", "    n_elements = n_elements - 1\n    grid = lambda meta", "vectorize:unmasked"),
    "block by its default": (ADD, ", BLOCK_SIZE=256", "", "vectorize:unmasked"),
    "flag's name taken": (TILED, "BLOCK_M = 64\n", "BLOCK_M = 64\nEVEN_M = 1\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused(case):
    text, was, becomes, refused = REFUSED[case]
    assert was in text
    changed = text.replace(was, becomes)
    ast.parse(changed)
    found = rewrites(changed)
    for one in refused.split(", ") if refused else ():
        kind, _, words = one.partition(":")
        kind, _, place = kind.partition("@")
        assert not [
            rewrite
            for other, rewrite in found
            if other == kind and words in rewrite.words and place in rewrite.place
        ]
        assert [r for k, r in rewrites(text) if k == kind], f"{kind} is never offered"


GROUPED = {
    "as it is": ("", "", {"K", "M", "N"}),
    "row by row": (
        "    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)\n"
        "    pid_n = (pid % num_pid_in_group) // group_size_m\n",
        "    pid_m = pid // num_pid_n\n    pid_n = pid % num_pid_n\n",
        {"K", "M", "N"},
    ),
    "column by column": (
        "    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)\n"
        "    pid_n = (pid % num_pid_in_group) // group_size_m\n",
        "    pid_m = pid % num_pid_m\n    pid_n = pid // num_pid_m\n",
        {"K", "M", "N"},
    ),
    "shorter row": ("(pid % num_pid_in_group) % group", "pid % group", {"K", "M", "N"}),
    "other order of factors": ("GROUP_SIZE_M * num_pid_n", "num_pid_n * GROUP_SIZE_M", {"K", "M", "N"}),
    "group too large": ("min(num_pid_m - first_pid_m,", "min(num_pid_m - first_pid_m + 1,", {"K"}),
    "no smaller last group": ("min(num_pid_m - first_pid_m, GROUP_SIZE_M)", "GROUP_SIZE_M", {"K"}),
    "rows of other blocks": ("tl.cdiv(M, BLOCK_SIZE_M)", "tl.cdiv(M, BLOCK_SIZE_N)", {"K"}),
    "columns of another size": ("num_pid_n = tl.cdiv(N,", "num_pid_n = tl.cdiv(M,", {"K"}),
    "groups that overlap": ("= group_id * GROUP_SIZE_M", "= group_id * 2", {"K"}),
    "number of another axis": ("program_id(axis=0)", "program_id(axis=1)", {"K"}),
    "more programs": ("* triton.cdiv(N, META['BLOCK_SIZE_N']), )", "* triton.cdiv(N, META['BLOCK_SIZE_N']) * 2, )", {"K"}),
    "grid of other blocks": ("triton.cdiv(N, META['BLOCK_SIZE_N'])", "triton.cdiv(N, META['BLOCK_SIZE_M'])", {"K"}),
    "number bound twice": ("    group_id = pid //", "    for i in range(2):\n        pid = pid + i\n    group_id = pid //", {"K"}),
}  # fmt: skip


@pytest.mark.parametrize("case", GROUPED)
def test_masks_of_a_grid_of_one_axis(case):
    was, becomes, sizes = GROUPED[case]
    assert was in MATMUL
    after = named(MATMUL.replace(was, becomes), "vectorize", "unmasked").source()
    assert {size for size in "KMN" if f"| EVEN_{size}" in after} == sizes


def test_numbers_of_a_grouped_order_are_below_their_counts():
    for rows, columns, group in itertools.product(range(1, 8), range(1, 6), range(1, 6)):
        for pid in range(rows * columns):
            per_group = group * columns
            first = pid // per_group * group
            size = min(rows - first, group)
            assert first + pid % size < rows
            assert first + pid % per_group % size < rows
            assert pid % per_group // size < columns


def test_a_number_that_may_mean_the_same_is_not_changed_alone():
    text = ADD.replace(
        "grid = lambda meta: (triton.cdiv(n_elements, meta['BLOCK_SIZE']), )",
        "grid = (triton.cdiv(n_elements, 256),)",
    )
    after = named(text, "retile", "to 512").source()
    assert "triton.cdiv(n_elements, 512)" in after
    assert "BLOCK_SIZE=512" in after

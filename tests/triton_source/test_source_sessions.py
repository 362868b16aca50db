"""Whole sessions on Triton sources: opening, steps, check, resume and export, without a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mtmc_engine.capture.load import load_reference
from mtmc_engine.capture.worker import open_task
from mtmc_engine.coder.edit import edited
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import Program
from mtmc_engine.export.write import export_best
from mtmc_engine.plan.state import State
from mtmc_engine.plan.state_text import state_text
from mtmc_engine.plan.tree import ROOT, PlanTree
from mtmc_engine.planner.roofline import scores_of
from mtmc_engine.schedule.cost import cost_of
from mtmc_engine.schedule.legal import apply_action, legal_actions, parse_phrase
from mtmc_engine.schedule.original import original_program
from mtmc_engine.schedule.regions import regions_in, root
from mtmc_engine.schedule.render import render
from mtmc_engine.system.devices import card
from tests.triton_source.source_cases import FILES

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


def double(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    double_kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128)
    return out


def inputs():
    return [torch.randn(300)]
"""
REFERENCE = "\n\ndef {}(x):\n    return x + x\n"


def opened(file, reference=None):
    arguments = {"file": str(file), "reference": reference, "seed": 0, "overrides": {}}
    arguments["target_card"] = msgspec.to_builtins(card("sm_90"))
    return open_task(arguments, lambda _: None)


def written(folder, text, name="double_it.py"):
    path = folder / name
    path.write_text(text)
    return path


def run(*arguments, home, timeout=240, answers=""):
    environment = {**os.environ, "MTMC_HOME": str(home), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "mtmc_tui.cli", *map(str, arguments)],
        env=environment,
        input=answers,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def events(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "name",
    [
        "reference",
        "double_reference",
        "reference_double",
        "double_ref",
        "ref_double",
        "torch_double",
    ],
)
def test_references_are_found_by_convention(tmp_path, name):
    found = load_reference(str(written(tmp_path, KERNEL + REFERENCE.format(name))))
    assert (found.entry, found.launcher, found.form) == (name, "double", "function")


def test_a_reference_may_be_named_in_the_file_by_option_or_elsewhere(tmp_path):
    text = KERNEL + REFERENCE.format("truth") + REFERENCE.format("reference")
    file = written(tmp_path, text + "\nTASK = {'reference': 'truth', 'launcher': 'double'}\n")
    assert load_reference(str(file)).entry == "truth"
    assert load_reference(str(file), "reference").entry == "reference"
    other = written(tmp_path, "import torch" + REFERENCE.format("truth"), "elsewhere.py")
    file = written(tmp_path, KERNEL)
    found = load_reference(str(file), f"{other}:truth")
    assert found.entry == "truth"
    assert found.home_file == str(other)
    assert len(found.inputs(0)) == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "looked for class Model and a function named reference, double_reference"),
        (REFERENCE.format("reference") + REFERENCE.format("double_ref"), "several references"),
        ("\n\ndef reference(x):\n    return double(x)\n", "no reference to compare"),
        (
            REFERENCE.format("reference")
            + "\n\ndef other(x):\n    double_kernel[(1,)](x, x, 1, 16)\n",
            "several launchers",
        ),
        (REFERENCE.format("reference") + "\nTASK = {'launcher': 'dobule'}\n", "launches no kernel"),
    ],
)
def test_what_is_missing_or_ambiguous_is_said_in_one_sentence(tmp_path, more, said):
    with pytest.raises(UsageError, match=said) as raised:
        load_reference(str(written(tmp_path, KERNEL + more)))
    assert "\n" not in str(raised.value)


def test_the_original_is_the_users_own_text():
    file = FILES["vector_add"]
    task = opened(file)
    program = original_program(task)
    assert program.source == file.read_text()
    assert render(task, program.schedule) == program.source
    assert task.defines == "add"
    assert task.entry == "torch_add"
    assert cost_of(task, program.schedule, task.device) == ()


def test_planners_rank_steps_whose_times_are_unknown():
    task = opened(FILES["scalar_norm"])
    schedule = original_program(task).schedule
    state = State(task, schedule, (), 0.0)
    legal = legal_actions(task, schedule, task.device)
    scores = dict(zip((a.phrase for a in legal), scores_of(state, legal), strict=True))
    assert max(scores, key=scores.get).startswith("primitive")
    assert min(scores, key=scores.get) == "stop"
    text = state_text(state)
    assert "r1 norm_kernel\n" in text.prefix
    assert "time unknown" in text.changing


def test_a_users_edit_of_the_whole_keeps_the_names():
    task = opened(FILES["two_stages"])
    program = original_program(task)
    action = parse_phrase(task, program.schedule, "retile r3 to 128")
    schedule = apply_action(task, program.schedule, action)
    source = schedule.groups[0].form.source
    assert "block, width = 256, 128" in source
    after = edited(task, Program(source, schedule), source.replace("x * x", "x * x * 1"))
    assert [r.id for r in after.schedule.regions] == [r.id for r in program.schedule.regions]
    assert parse_phrase(task, after.schedule, "retile r1 to 512")


def test_a_group_that_the_user_edited_takes_the_rewrites(tmp_path):
    """In an ordinary session: the other group stays templated and takes its own steps."""
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.softmax(x, -1).cumsum(0).exp() * 2\n\n\n"
        "def get_inputs():\n    return [torch.randn(64, 4096)]\n"
    )
    task = opened(written(tmp_path, text, "chain.py"))
    schedule = root(task.graph)
    for _ in range(2):
        lower = [a for a in legal_actions(task, schedule, task.device) if a.kind == "lower"]
        schedule = apply_action(task, schedule, lower[0])
    source = render(task, schedule)
    hand = source.replace("num_warps=", "num_stages=2, num_warps=", 1)
    assert hand != source
    after = edited(task, Program(source, schedule), hand)
    by_hand = [g.region for g in after.schedule.groups if type(g.form).__name__ == "ByHand"]
    assert len(by_hand) == 1
    steps = [a for a in legal_actions(task, after.schedule, task.device) if a.region == by_hand[0]]
    pipelined = next(a for a in steps if a.kind == "pipeline")
    changed = apply_action(task, after.schedule, pipelined)
    assert [g for g in changed.groups if g.region not in by_hand] == [
        g for g in after.schedule.groups if g.region not in by_hand
    ]
    new = render(task, changed)
    compile(new, "changed", "exec")
    assert new != hand
    assert [r.id for r in regions_in(task.graph, changed)] == [
        r.id for r in regions_in(task.graph, schedule)
    ]


@pytest.mark.slow
def test_a_session_proves_the_original_and_its_steps(tmp_path):
    file = written(tmp_path, KERNEL + REFERENCE.format("reference"))
    before = file.read_bytes()
    home = tmp_path / "home"
    done = run(file, "--json", "--yes", "--planner", "roofline", "--steps", 2, home=home)
    assert done.returncode == 0, done.stderr
    found = events(done)
    opened_as = next(e for e in found if e["event"] == "task_opened")
    assert [r["label"] for r in opened_as["regions"]] == [
        "double_kernel",
        "load x",
        "launch double_kernel",
    ]
    first = next(e for e in found if e["event"] == "node_added")
    assert first["verdict"]["verdict"] == "UNTIMED"
    assert first["measurement"] is None
    last = found[-1]
    assert [step["verdict"] for step in last["steps"]] == ["UNTIMED", "UNTIMED"]
    assert last["best"]["is_original"]
    assert last["best"]["time_us"] is None
    assert last["best"]["reason"].startswith("2 steps are proven but were not timed: keep one by")
    assert opened_as["instead"] == "none"
    assert file.read_bytes() == before
    again = run(
        file, "--json", "--yes", "--planner", "roofline", "--steps", 3, "--resume", home=home
    )
    assert again.returncode == 0, again.stderr
    assert [step["step"] for step in events(again)[-1]["steps"]] == [1, 2, 3]


@pytest.mark.slow
def test_what_is_kept_by_hand_is_the_answer_where_nothing_can_be_timed(tmp_path):
    file = written(tmp_path, KERNEL + REFERENCE.format("reference"))
    answers = "".join(f'{{"command": "decide", "choice": "{c}"}}\n' for c in ("approve", "reject"))
    out, home = tmp_path / "out", tmp_path / "home"
    options = ("--json", "--planner", "roofline", "--steps", 2, "--export", out)
    done = run(file, *options, home=home, answers=answers)
    assert done.returncode == 0, done.stderr
    found = events(done)
    (best,) = (e for e in found if e["event"] == "best_changed")
    assert (best["node"], best["ratio"], best["time_us"], best["time_kind"]) == ("n1", *[None] * 3)
    answer = found[-1]["best"]
    assert not answer["is_original"]
    assert answer["reason"] == "It was kept by hand: nothing here can time it."
    exported = (out / "double_it_mtmc.py").read_text()
    assert "Not timed: no GPU was present." in exported
    (candidate,) = (e for e in found if e["event"] == "candidate_ready" and e["node"] == "n1")
    assert {line for line in candidate["source"].splitlines() if "BLOCK" in line} <= set(
        exported.splitlines()
    )
    assert "Nothing was timed" in (out / "report.html").read_text()


@pytest.mark.slow
def test_a_wrong_original_is_said(tmp_path):
    wrong = KERNEL.replace("2 * tl.load", "3 * tl.load") + REFERENCE.format("reference")
    file = written(tmp_path, wrong)
    done = run(
        file,
        "--json",
        "--yes",
        "--planner",
        "roofline",
        "--steps",
        1,
        "--export",
        tmp_path / "out",
        home=tmp_path / "home",
    )
    found = events(done)
    warned = [e["text"] for e in found if e["event"] == "notice" and e["level"] == "warning"]
    assert any("The original itself is wrong (NUMERIC" in text for text in warned)
    assert found[-1]["steps"][0]["verdict"] == "NUMERIC"
    assert found[-1]["export"] is None
    assert done.returncode == 2


@pytest.mark.slow
def test_candidates_are_judged_against_a_triton_source(tmp_path):
    text = KERNEL + REFERENCE.format("reference")
    file = written(tmp_path, text)
    good = written(tmp_path, text.replace("128", "64"), "good.py")
    bad = written(tmp_path, text.replace("offsets < n", "offsets < n - 1"), "bad.py")
    home = tmp_path / "home"
    accepted = json.loads(run("check", file, good, "--json", home=home).stdout)
    assert (accepted["verdict"], accepted["accepted"]) == ("UNTIMED", True)
    rejected = json.loads(run("check", file, bad, "--json", home=home).stdout)
    assert (rejected["verdict"], rejected["accepted"]) == ("NUMERIC", False)
    other = written(tmp_path, "import torch" + REFERENCE.format("truth"), "elsewhere.py")
    bare = written(tmp_path, KERNEL, "bare.py")
    named = run("check", bare, good, "--reference", f"{other}:truth", "--json", home=home)
    assert json.loads(named.stdout)["accepted"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("two_stages", "vectorize r1 unmasked"),
        ("in_place_scale", "vectorize r1 unmasked"),
        ("scalar_norm", "autotune r1"),
    ],
)
def test_an_export_runs_on_its_own(tmp_path, name, phrase):
    task = opened(FILES[name])
    program = original_program(task)
    schedule = apply_action(task, program.schedule, parse_phrase(task, program.schedule, phrase))
    tree = PlanTree(program)
    action = parse_phrase(task, program.schedule, phrase)
    node = tree.add(ROOT, action, Program(render(task, schedule), schedule), 1)
    exported = export_best(task, path=tree.path(node.id), steps=(), folder=tmp_path)
    text = (tmp_path / f"{name}_mtmc.py").read_text()
    assert "_not_proven(" in text
    assert "mtmc_engine" not in text
    assert f"test_{name}.py" in exported.files
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{name}.py"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_an_export_embeds_a_reference_of_another_file(tmp_path):
    other = written(tmp_path, "import torch" + REFERENCE.format("truth"), "elsewhere.py")
    task = opened(written(tmp_path, KERNEL), f"{other}:truth")
    assert Path(task.reference) == other
    tree = PlanTree(original_program(task))
    export_best(task, path=tree.path(ROOT), steps=(), folder=tmp_path)
    text = (tmp_path / f"{task.module}_mtmc.py").read_text()
    assert "def truth(x):" in text
    assert "_reference = truth" in text
    assert "return _reference(x)" in text

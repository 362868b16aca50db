"""The planner's budget, measured with the bundled model's own tokenizer on the real samples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mtmc_engine.core.task import Task
from mtmc_engine.schedule.legal import apply_action, legal_actions
from mtmc_engine.schedule.original import original_schedule
from mtmc_engine.schedule.phrases import MAX_TRIE_TOKENS, PhraseBudget
from mtmc_engine.system.model_file import bundled

ROOT = Path(__file__).parents[2]
MAX_PHRASE_TOKENS = 20

CAPTURE = """
import json, sys
import msgspec, torch
from mtmc_engine.capture.worker import open_task
from mtmc_engine.system.devices import card
torch.set_num_threads(1)
target = msgspec.to_builtins(card("sm_90"))
tasks = [
    open_task({"file": file, "overrides": {}, "seed": 0, "target_card": target}, lambda _: None)
    for file in sys.argv[1:]
]
print(json.dumps(msgspec.to_builtins(tasks)))
"""

TOKENIZE = """
import json, sys
from llama_cpp import Llama
model = Llama(sys.argv[1], vocab_only=True, verbose=False)
tokens = lambda phrase: model.tokenize((" " + phrase).encode(), add_bos=False)
print(json.dumps([[tokens(phrase) for phrase in state] for state in json.load(sys.stdin)]))
"""


def in_child(script, *arguments, given=""):
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def states():
    """Phrases of every state of a greedy walk of eight steps over each sample."""
    files = sorted(str(file) for file in (ROOT / "samples").glob("[a-z]*.py"))
    found = []
    for task in msgspec.convert(in_child(CAPTURE, *files), list[Task]):
        schedule = original_schedule(task)
        judged: frozenset[str] = frozenset()
        for _ in range(8):
            actions = legal_actions(task, schedule, task.device, judged)
            found.append([action.phrase for action in actions])
            schedule = apply_action(task, schedule, actions[0])
            # A program that was left is not gone back to.
            judged = frozenset(a.phrase for a in actions if a.kind == "library")
    return found


@pytest.mark.slow
def test_every_trie_of_phrases_fits_the_planner(states):
    model = bundled()
    assert model is not None
    assert len(states) >= 64
    for phrases, tokens in zip(
        states, in_child(TOKENIZE, str(model), given=json.dumps(states)), strict=True
    ):
        trie = {tuple(t[:end]) for t in tokens for end in range(1, len(t) + 1)}
        assert len(trie) <= MAX_TRIE_TOKENS, phrases
        assert max(map(len, tokens)) <= MAX_PHRASE_TOKENS, phrases
        budget = PhraseBudget()
        assert all(budget.take(phrase) for phrase in phrases)
        assert abs(budget.tokens - len(trie)) <= 3, (phrases, budget.tokens, len(trie))

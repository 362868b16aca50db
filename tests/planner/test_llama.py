"""The host and its planner, with a real model of llama's architecture."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from step_phrases import PHRASES

from mtmc_engine.core.errors import UsageError, WorkerDied
from mtmc_engine.plan.state_text import StateText, state_text
from mtmc_engine.planner.llama import LlamaPlanner
from mtmc_engine.system.processes import children_of

TEXT = StateText("GPU Step time memory.\nr1 lower\n", "Step 1 of 8.\nNext step:")


def plain_logprobs(model: Path, text: StateText, phrases: tuple[str, ...]) -> list[float]:
    """Each phrase by itself after the prompt, through the high-level interface."""
    import llama_cpp

    llama = llama_cpp.Llama(str(model), n_ctx=768, logits_all=True, verbose=False, n_threads=1)
    bos = "smol" not in model.name.lower()
    prompt = llama.tokenize("".join(text).encode(), add_bos=bos)
    llama.eval(prompt)
    sums = []
    for phrase in phrases:
        tokens = llama.tokenize(("".join(text) + " " + phrase).encode(), add_bos=bos)
        assert tokens[: len(prompt)] == prompt
        llama.n_tokens = len(prompt)
        llama.eval(tokens[len(prompt) :])
        logits = llama.scores[: len(tokens)].astype(np.float64)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        places = range(len(prompt), len(tokens))
        sums.append(float(sum(logits[at - 1, tokens[at]] for at in places)))
    llama.close()
    return sums


async def test_the_trie_scores_as_one_by_one(tiny_gguf):
    planner = LlamaPlanner(tiny_gguf, threads=2)
    reading = await planner.read(TEXT, PHRASES)
    await planner.close()
    assert [s.logprob for s in reading.scores] == pytest.approx(
        plain_logprobs(tiny_gguf, TEXT, PHRASES), abs=1e-3
    )
    assert [s.words for s in reading.scores] == [len(p.split()) for p in PHRASES]
    assert reading.decoded_tokens < reading.trie_tokens < sum(s.tokens for s in reading.scores)


async def test_a_phrase_scores_the_same_whatever_stands_beside_it(tiny_gguf):
    planner = LlamaPlanner(tiny_gguf, threads=2)
    together = await planner.read(TEXT, PHRASES)
    alone = [await planner.read(TEXT, [phrase]) for phrase in PHRASES]
    await planner.close()
    assert [s.logprob for s in together.scores] == pytest.approx(
        [r.scores[0].logprob for r in alone], abs=1e-3
    )


async def test_more_phrases_than_one_batch_holds(tiny_gguf):
    phrases = [f"retile r{n} to {n}x16" for n in range(75)]
    planner = LlamaPlanner(tiny_gguf, threads=2)
    all_at_once = await planner.read(TEXT, phrases)
    last = await planner.read(TEXT, phrases[-1:])
    await planner.close()
    assert len(all_at_once.scores) == 75
    assert all_at_once.scores[-1].logprob == pytest.approx(last.scores[0].logprob, abs=1e-3)


async def test_the_prefix_stays_in_memory_up_to_the_first_difference(tiny_gguf):
    planner = LlamaPlanner(tiny_gguf, threads=2)
    first = await planner.read(TEXT, PHRASES)
    changed = TEXT._replace(changing="Step 2 of 8.\nDone lower\nNext step:")
    second = await planner.read(changed, PHRASES)
    hinted = TEXT._replace(prefix=TEXT.prefix + "fuse\n")
    third = await planner.read(hinted, PHRASES)
    again = await planner.read(TEXT, PHRASES)
    await planner.close()
    assert first.reused_tokens == 0
    assert second.reused_tokens == second.prefix_tokens == first.prefix_tokens
    assert third.reused_tokens == first.prefix_tokens < third.prefix_tokens
    assert second.scores != first.scores
    assert [s.logprob for s in again.scores] == pytest.approx(
        [s.logprob for s in first.scores], abs=1e-3
    )


async def test_prepare_reads_the_prefix_ahead(tiny_gguf, state, legal):
    planner = LlamaPlanner(tiny_gguf, threads=2)
    await planner.prepare(state)
    await planner.propose(state, legal)
    await planner.close()
    reading = planner.reading
    assert reading.reused_tokens == reading.prefix_tokens > 0


async def test_a_state_too_long_loses_the_end_of_its_prefix(tiny_gguf):
    long = TEXT._replace(prefix=TEXT.prefix * 60)
    planner = LlamaPlanner(tiny_gguf, threads=2)
    reading = await planner.read(long, PHRASES)
    assert reading.dropped_tokens > 0
    used = reading.prefix_tokens + reading.changing_tokens + reading.decoded_tokens
    assert used == 768
    with pytest.raises(UsageError, match="exceed the model's context of 768 tokens"):
        await planner.read(TEXT._replace(changing="Step " * 900), PHRASES)
    after = await planner.read(TEXT, PHRASES)
    assert after.dropped_tokens == 0
    await planner.close()


@pytest.mark.parametrize("normalise", ["word", "token", "none"])
async def test_probabilities_are_a_softmax_over_the_legal(tiny_gguf, state, legal, normalise):
    planner = LlamaPlanner(tiny_gguf, normalise, threads=2)
    ranked = await planner.propose(state, legal)
    await planner.close()
    assert {o.action.phrase for o in ranked} == set(PHRASES)
    assert sum(o.probability for o in ranked) == pytest.approx(1)
    assert list(ranked) == sorted(ranked, key=lambda o: -o.probability)
    scores = dict(zip(PHRASES, planner.reading.scores, strict=True))
    lengths = {
        "word": lambda s: s.words,
        "token": lambda s: s.tokens,
        "none": lambda _: 1,
    }[normalise]
    best, worst = ranked[0], ranked[-1]
    expected = scores[best.action.phrase].logprob / lengths(scores[best.action.phrase]) - scores[
        worst.action.phrase
    ].logprob / lengths(scores[worst.action.phrase])
    assert math.log(best.probability / worst.probability) == pytest.approx(expected)


def hosts() -> list[int]:
    """Planner hosts among this process's children."""
    return [
        pid
        for pid in children_of(os.getpid())
        if b"mtmc_engine.planner.host.serve" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


async def test_a_dead_host_is_restarted_once(tiny_gguf, state, legal):
    planner = LlamaPlanner(tiny_gguf, threads=2)
    before = await planner.propose(state, legal)
    os.kill(hosts()[0], signal.SIGKILL)
    after = await planner.propose(state, legal)
    assert [o.action for o in after] == [o.action for o in before]
    os.kill(hosts()[0], signal.SIGSEGV)
    with pytest.raises(WorkerDied, match="planner host"):
        await planner.propose(state, legal)
    await planner.close()


async def test_simultaneous_calls_share_one_host(tiny_gguf, state, legal):
    planner = LlamaPlanner(tiny_gguf, threads=2)
    await asyncio.gather(planner.prepare(state), planner.propose(state, legal))
    assert len(hosts()) == 1
    await planner.close()
    assert hosts() == []


async def test_modules_of_the_users_folder_stay_out_of_the_host(tiny_gguf, tmp_path, monkeypatch):
    for name in ("json", "numpy", "llama_cpp", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    planner = LlamaPlanner(tiny_gguf, threads=2)
    reading = await planner.read(TEXT, ["stop"])
    await planner.close()
    assert reading.scores[0].words == 1


async def test_a_file_that_llama_cpp_cannot_load_is_refused(tmp_path, state):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(400))
    planner = LlamaPlanner(broken)
    with pytest.raises(UsageError, match="cannot load"):
        await planner.prepare(state)
    await planner.close()


def test_the_protocol_is_alone_on_stdout(tiny_gguf):
    """llama.cpp talks on descriptors 1 and 2 while it loads; both are the log."""
    load = {"id": 1, "op": "load", "path": str(tiny_gguf), "threads": 1}
    score = {"id": 2, "op": "score", "prefix": "a", "changing": "Step:", "phrases": ["stop"]}
    early = {"id": 0, "op": "prime", "prefix": "a"}
    lines = "".join(json.dumps(request) + "\n" for request in (early, load, score))
    host = subprocess.run(
        [sys.executable, "-m", "mtmc_engine.planner.host.serve"],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    replies = [json.loads(line) for line in host.stdout.splitlines()]
    assert [reply["id"] for reply in replies] == [0, 1, 2]
    assert "error" in replies[0]
    assert replies[2]["scores"][0]["words"] == 1
    assert "llama_context" in host.stderr


@pytest.mark.slow
async def test_the_bundled_model_scores_as_one_by_one(bundled_gguf, state):
    """Quantised kernels round by the batch's shape, so that single phrases may be off."""
    planner = LlamaPlanner(bundled_gguf, threads=2)
    reading = await planner.read(state_text(state), PHRASES)
    await planner.close()
    plain = plain_logprobs(bundled_gguf, state_text(state), PHRASES)
    trie = [score.logprob for score in reading.scores]
    assert trie == pytest.approx(plain, abs=0.55)
    assert (
        sorted(PHRASES, key=dict(zip(PHRASES, trie, strict=True)).get)[-3:]
        == (sorted(PHRASES, key=dict(zip(PHRASES, plain, strict=True)).get)[-3:])
    )


@pytest.mark.slow
async def test_a_decision_of_the_bundled_model_is_within_its_budgets(bundled_gguf, state, legal):
    """Three seconds on two cores; the quickest of three, since other work may share the cores."""
    planner = LlamaPlanner(bundled_gguf, threads=2)
    await planner.prepare(state)
    seconds = []
    for step in range(2, 5):
        began = time.perf_counter()
        await planner.propose(replace(state, step=step), legal)
        seconds.append(time.perf_counter() - began)
    reading = planner.reading
    await planner.close()
    assert reading.reused_tokens == reading.prefix_tokens <= 300
    assert reading.changing_tokens <= 120
    assert reading.trie_tokens <= 150
    assert min(seconds) <= 3

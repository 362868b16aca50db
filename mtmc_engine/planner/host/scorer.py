"""Log-probabilities of phrases after a prompt whose stable beginning stays in KV memory.

Runs in the planner's host process.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtmc_engine.planner.host import trie
from mtmc_engine.planner.host.context import BATCH_TOKENS, MOST_PHRASES, Context, Entry
from mtmc_engine.planner.reading import PhraseScore, Reading, Refused


class Scorer:
    """Scores phrases with one context; remembers the prefix between calls."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._prefix: list[int] = []

    def prime(self, prefix: str) -> int:
        """Read `prefix`, as far as it fits, into memory; returns the number of tokens read."""
        tokens = self._context.tokenize(prefix, start=True)[: self._context.n_ctx]
        self._hold_prefix(tokens)
        return len(tokens)

    def score(self, prefix: str, changing: str, phrases: Sequence[str]) -> Reading:
        """Score each phrase as the continuation " phrase" of prefix + changing.

        Where the state exceeds the context the prefix is cut at its end: the instructions stand
        first in it, the list of operators last. Raises Refused where that cannot help.
        The changing part is always decoded as one batch of its own: a quantised model's logits
        depend on the batch's shape, and equal states must get equal scores.
        """
        context = self._context
        last_line = changing.rpartition("\n")[2]
        stable = context.tokenize(prefix, start=True)
        moving = context.continuation(prefix[-64:], changing)
        tokens = [context.continuation(last_line, " " + phrase) for phrase in phrases]
        tries = [trie.build(chunk) for chunk in _chunks(tokens)]
        dropped = self._excess(len(stable), len(moving), tries)
        stable = stable[: len(stable) - dropped]

        began = time.perf_counter()
        reused = self._hold_prefix(stable)
        prefixed = time.perf_counter()
        after_prompt = self._decode_prompt(moving, len(stable))
        moved = time.perf_counter()
        logprobs = [
            value
            for one in tries
            for value in self._score_trie(one, len(stable) + len(moving), after_prompt)
        ]
        ended = time.perf_counter()
        return Reading(
            scores=tuple(
                PhraseScore(logprob, len(ids), len(phrase.split()))
                for logprob, ids, phrase in zip(logprobs, tokens, phrases, strict=True)
            ),
            prefix_tokens=len(stable),
            reused_tokens=reused,
            dropped_tokens=dropped,
            changing_tokens=len(moving),
            trie_tokens=sum(len(one.nodes) for one in tries),
            decoded_tokens=sum(len(one.decoded) for one in tries),
            seconds={
                "prefix": prefixed - began,
                "changing": moved - prefixed,
                "trie": ended - moved,
            },
        )

    def _excess(self, stable: int, moving: int, tries: Sequence[trie.Trie]) -> int:
        branches = max(len(one.decoded) for one in tries)
        excess = max(0, stable + moving + branches - self._context.n_ctx)
        if excess > stable or branches > BATCH_TOKENS:
            raise Refused(
                f"The state's changing part ({moving} tokens) and the legal steps ({branches}) "
                f"exceed the model's context of {self._context.n_ctx} tokens."
            )
        return excess

    def _hold_prefix(self, tokens: list[int]) -> int:
        """Make memory hold exactly `tokens`, from the first differing one; returns those kept."""
        kept = 0
        for held, wanted in zip(self._prefix, tokens, strict=False):
            if held != wanted:
                break
            kept += 1
        self._context.forget(0, kept)
        self._prefix = tokens[:kept]
        self._decode_run(tokens[kept:], kept)
        self._prefix = tokens
        return kept

    def _decode_prompt(self, tokens: list[int], start: int) -> NDArray[np.float32]:
        """Logits after the prompt's last token."""
        return self._decode_run(tokens, start, logits_at_end=True)[-1]

    def _decode_run(
        self, tokens: list[int], start: int, logits_at_end: bool = False
    ) -> list[NDArray[np.float32]]:
        logits: list[NDArray[np.float32]] = []
        last = start + len(tokens) - 1
        entries = [
            Entry(token, position, (0,), logits_at_end and position == last)
            for position, token in enumerate(tokens, start)
        ]
        for at in range(0, len(entries), BATCH_TOKENS):
            logits = self._context.decode(entries[at : at + BATCH_TOKENS])
        return logits

    def _score_trie(
        self, one: trie.Trie, start: int, after_prompt: NDArray[np.float32]
    ) -> list[float]:
        """Sum of log-probabilities of each phrase of a trie that follows position `start`."""
        sequences = range(1, len(one.paths) + 1)
        for sequence in sequences:
            self._context.share(0, sequence)
        entries = [
            Entry(node.token, start + node.depth, tuple(p + 1 for p in node.phrases), True)
            for node in (one.nodes[index] for index in one.decoded)
        ]
        rows = self._context.decode(entries) if entries else []
        for sequence in sequences:
            self._context.forget(sequence)
        logits = {trie.PROMPT: after_prompt, **dict(zip(one.decoded, rows, strict=True))}
        logprob = {
            child: value
            for parent, below in one.children.items()
            for child, value in _log_softmax(logits[parent], one, below)
        }
        return [sum(logprob[index] for index in path) for path in one.paths]


def _log_softmax(
    logits: NDArray[np.float32], one: trie.Trie, nodes: tuple[int, ...]
) -> list[tuple[int, float]]:
    largest = float(logits.max())
    total = largest + float(np.log(np.exp(logits - largest).sum(dtype=np.float64)))
    return [(index, float(logits[one.nodes[index].token]) - total) for index in nodes]


def _chunks(phrases: list[list[int]]) -> list[list[list[int]]]:
    """Phrases in runs that one batch holds, whatever they share."""
    chunks: list[list[list[int]]] = [[]]
    for tokens in phrases:
        size = sum(map(len, chunks[-1])) + len(tokens)
        if chunks[-1] and (len(chunks[-1]) == MOST_PHRASES or size > BATCH_TOKENS):
            chunks.append([])
        chunks[-1].append(tokens)
    return chunks

"""What a language model says about phrases: the host's answer, and lengths to normalise by."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Normalise = Literal["word", "token", "none"]


class Refused(Exception):
    """The model file or the state cannot be used. `str(error)` is one sentence."""


class PhraseScore(Struct, frozen=True):
    """logprob: sum over the phrase's tokens of ln p(token | state text, tokens before)."""

    logprob: float
    tokens: int
    words: int

    def normalised(self, by: Normalise) -> float:
        """Divided by words or tokens: a plain product punishes long phrases."""
        return self.logprob / {"word": self.words, "token": self.tokens, "none": 1}[by]


class Reading(Struct, frozen=True):
    """Scores of the phrases in the order asked for, and what they cost.

    reused_tokens:  tokens of the prefix that were in memory already.
    dropped_tokens: tokens cut from the prefix's end so that the state fits the context.
    trie_tokens:    tokens of the phrases, shared beginnings counted once;
                    `decoded_tokens` of them went through the model.
    seconds:        wall-clock time by part: "prefix", "changing", "trie".
    """

    scores: tuple[PhraseScore, ...]
    prefix_tokens: int
    reused_tokens: int
    dropped_tokens: int
    changing_tokens: int
    trie_tokens: int
    decoded_tokens: int
    seconds: dict[str, float]

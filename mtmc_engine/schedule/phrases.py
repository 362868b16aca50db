"""The planner's budget: how many tokens the trie of all phrases takes."""

from __future__ import annotations

import re

MAX_TRIE_TOKENS = 150
# Words that a byte-pair vocabulary of 49,152 entries splits (SmolLM2); digits stand alone, the
# first one behind a token for its space.
_SPLIT = {
    "fuse": 2,
    "retile": 2,
    "vectorize": 2,
    "warps": 2,
    "autotune": 3,
    "reorder": 2,
    "persist": 2,
    "simplify": 2,
    "cumprod": 2,
    "cumsum": 2,
    "unmasked": 2,
    "primitive": 2,
}
_PIECE = re.compile(r" ?[a-z]+| |\d")


def pieces(phrase: str) -> tuple[str, ...]:
    """The tokens of a phrase as the bundled model splits it."""
    found: list[str] = []
    for match in _PIECE.finditer(phrase):
        piece = match.group()
        count = _SPLIT.get(piece.strip(), 1)
        found.extend(f"{piece}.{part}" for part in range(count))
    return tuple(found)


class PhraseBudget:
    """Takes phrases into a trie as long as it stays small enough."""

    def __init__(self, limit: int = MAX_TRIE_TOKENS) -> None:
        self._limit = limit
        self._prefixes: set[tuple[str, ...]] = set()

    def take(self, phrase: str) -> bool:
        """Adds the phrase and says True, or leaves the trie as it is and says False."""
        tokens = pieces(phrase)
        new = {tokens[:end] for end in range(1, len(tokens) + 1)} - self._prefixes
        if len(self._prefixes) + len(new) > self._limit:
            return False
        self._prefixes |= new
        return True

    @property
    def tokens(self) -> int:
        return len(self._prefixes)

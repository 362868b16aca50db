"""Nearest known word, for "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like `word`, without regard to case; "" where none is known."""
    by_folded = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), by_folded, n=1, cutoff=0.0)
    return by_folded[found[0]] if found else ""

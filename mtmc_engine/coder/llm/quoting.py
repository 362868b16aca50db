"""Material in a prompt, between marks that it cannot close."""

from __future__ import annotations

import hashlib


def quoted(name: str, text: str) -> str:
    """Text of others as data. Equal texts give equal results, so that prefix caches work.

    The mark's id is drawn from the text, and drawn again until the text does not contain it.
    """
    mark = _mark(text)
    return f"<data {name} {mark}>\n{text.strip(chr(10))}\n</data {mark}>"


def _mark(text: str) -> str:
    for salt in range(1 << 16):
        mark = hashlib.sha256(f"{salt}:{text}".encode(errors="replace")).hexdigest()[:8]
        if mark not in text:
            return mark
    raise AssertionError("a text cannot hold 65536 marks that are drawn from it")

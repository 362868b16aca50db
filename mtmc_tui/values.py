"""Values of the command line's options: what cannot be meant is refused in one sentence."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.options import MOST_RATIO


def integer(option: str | None, text: str) -> int:
    """3 of "3". Raises UsageError."""
    if re.fullmatch(r"[+-]?\d{1,30}", text.strip()) is None:
        raise UsageError(f"{option} {text} cannot be used: give a whole number.")
    return int(text)


def utf8(texts: Iterable[str]) -> None:
    """Raises UsageError for a text that is no UTF-8, as a file's name may be."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            shown = os.fsencode(text).decode(errors="replace")
            raise UsageError(f"{shown} is not UTF-8 text: give the file another name.") from error


def whole(option: str, given: int | None, least: int, most: int) -> int | None:
    """A whole number within its bounds. Raises UsageError."""
    if given is not None and not least <= given <= most:
        raise UsageError(f"{option} {given} cannot be used: give a number from {least} to {most}.")
    return given


def above_zero(option: str, given: float | None) -> float | None:
    """A finite number above zero. Raises UsageError."""
    if given is not None and not 0 < given < math.inf:
        raise UsageError(f"{option} {given:g} cannot be used: give a number above 0.")
    return given


def word(option: str, given: str | None) -> str | None:
    """A text with something in it. Raises UsageError."""
    if given is not None and not given.strip():
        raise UsageError(f"{option} is empty: give it a value, or leave it out.")
    return given


def ratio_of(text: str | None) -> float | None:
    """1.5 of "1.5" or "1.5x". Raises UsageError for what is no ratio, or reached at the start."""
    if text is None:
        return None
    matched = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)[x×]?", text.strip())
    if matched is None:
        raise UsageError(f"--until '{text}' is not a ratio: write it as 1.5 or 1.5x.")
    ratio = float(matched[1])
    if not 1 < ratio <= MOST_RATIO:
        raise UsageError(
            f"--until '{text}' cannot be reached by a step: give a ratio above 1, such as 1.5x."
        )
    return ratio

"""The Retry-After header: seconds, or a date of HTTP (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, at least 0; None where it does not say or is unclear.

    headers: looked up by lower-case name. A date counts from the server's own clock where the
    answer carries its date. Retry-After-Ms, which some servers add, is the finer one.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(headers.get(name))
        if seconds is not None:
            return seconds / unit
    until = _date(headers.get("retry-after"))
    if until is None:
        return None
    now = _date(headers.get("date"))
    return max(0.0, until - (time.time() if now is None else now))


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _date(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, OverflowError):
        return None

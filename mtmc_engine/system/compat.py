"""Versions of torch and Triton that are installed, and which are supported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path

OLDEST = {"torch": (2, 9), "triton": (3, 5)}


def version(package: str) -> str:
    """Installed version of a distribution, without importing it; "" where it is absent."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def numbers(text: str) -> tuple[int, ...]:
    """Leading numbers of a version: (2, 13, 0) for "2.13.0+cpu"."""
    return tuple(int(part) for part in re.match(r"[\d.]*", text)[0].split(".") if part)  # type: ignore[index]


def supported(package: str, text: str) -> bool:
    """Whether version `text` of torch or triton is one that this tool works with."""
    return numbers(text) >= OLDEST[package]


def ptxas() -> Path | None:
    """Triton's own ptxas, found without importing triton; None where it is missing."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"
    return found if found.exists() else None

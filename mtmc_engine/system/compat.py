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


# What differs from older examples of Triton, each with the first version that it holds in and the
# first that it no longer holds in.
_DIFFERENCES: tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...] = (
    (
        (3, 0),
        (99,),
        "tl has exp, exp2, log, log2, sqrt, rsqrt, sin, cos, erf, abs, floor, ceil, fma, sigmoid; "
        "it has no tanh, gelu, pow, round, log1p or expm1, and tl.math has no more.",
    ),
    (
        (3, 0),
        (99,),
        "tl.libdevice is gone: from triton.language.extra import libdevice has the rest.",
    ),
    (
        (3, 0),
        (99,),
        'tl.dot(a, b, acc) on float32 rounds to TF32 unless input_precision="ieee" is given; '
        "allow_tf32 is deprecated.",
    ),
    (
        (3, 0),
        (99,),
        "tl.max(x, axis=0) reduces; of two values the larger is tl.maximum(x, y). tl.sum, tl.max "
        "and tl.min have no mask: use tl.where first.",
    ),
    (
        (3, 5),
        (3, 9),
        "Newer versions remove tl.make_block_ptr and tl.advance: use pointers and masks.",
    ),
    (
        (3, 9),
        (99,),
        "tl.make_block_ptr and tl.advance are removed: use pointers and masks.",
    ),
)


def triton_differences(text: str) -> tuple[str, ...]:
    """What a writer of kernels must know about version `text` of Triton, one sentence each."""
    held = numbers(text)
    return tuple(note for first, gone, note in _DIFFERENCES if first <= held < gone)

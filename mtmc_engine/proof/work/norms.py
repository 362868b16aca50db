"""Norms of tensors and of differences, in chunks, over finite elements."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from mtmc_engine.proof.tolerance import Norms

CHUNK = 1 << 22


def chunks(*tensors: torch.Tensor) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """Matching pieces of tensors of one shape, with the offset of their first element.

    Large tensors are looked at on the GPU where there is one, piece by piece.
    """
    flat = [tensor.reshape(-1) for tensor in tensors]
    near = flat[0].numel() > CHUNK and torch.cuda.is_available()
    for start in range(0, flat[0].numel(), CHUNK):
        pieces = (piece[start : start + CHUNK] for piece in flat)
        yield start, tuple(piece.to("cuda") if near else piece for piece in pieces)


def as_double(piece: torch.Tensor) -> torch.Tensor:
    """float64, or complex as pairs of float64 along a new last dimension."""
    return torch.view_as_real(piece.to(torch.complex128)) if piece.is_complex() else piece.double()


def size_of(values: torch.Tensor) -> Norms:
    """Norms of the finite elements; zeros where there is none."""
    return _norms(as_double(piece) for _, (piece,) in chunks(values))


def distance(result: torch.Tensor, truth: torch.Tensor) -> Norms:
    """Norms of the difference where both are finite."""
    pairs = chunks(result, truth)
    return _norms(as_double(a) - as_double(b) for _, (a, b) in pairs)


def _norms(pieces: Iterator[torch.Tensor]) -> Norms:
    largest, squares, count = 0.0, 0.0, 0
    for piece in pieces:
        finite = piece[torch.isfinite(piece)]
        if finite.numel():
            top = float(finite.abs().max())
            largest = max(largest, top)
            count += finite.numel()
            if top:
                squares += float(((finite / top) ** 2).sum()) * top * top
    rms = math.sqrt(squares / count) if count else 0.0
    return Norms(largest, rms if math.isfinite(rms) else largest)


def finite_share(values: torch.Tensor) -> float:
    """Share of finite elements, 1.0 for an empty tensor."""
    if not values.numel():
        return 1.0
    found = sum(int(torch.isfinite(piece).sum()) for _, (piece,) in chunks(values))
    return found / int(values.numel())

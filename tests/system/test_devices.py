"""Device cards, the GPU of this machine, and suggestions."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from mtmc_engine.core.errors import UsageError
from mtmc_engine.system import devices
from mtmc_engine.system.devices import card, card_of, cards, local_gpu
from mtmc_engine.system.suggest import nearest

SMI = """#!/bin/sh
echo "0, NVIDIA H200, 9.0, 143771, 580.82.07"
echo "1, NVIDIA A100-SXM4-80GB, 8.0, 81920, 580.82.07"
"""


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """A machine whose nvidia-smi answers as one with an H200 and an A100 does."""
    program = tmp_path / "nvidia-smi"
    program.write_text(SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices.gpus.cache_clear()
    yield
    devices.gpus.cache_clear()


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_the_named_targets():
    known = cards()
    assert {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100"} <= set(known)
    assert (known["sm_90"].name, known["sm_90"].sms) == ("H200", 132)
    assert known["sm_90"].bandwidth_gbs == 4800
    assert known["sm_90"].tflops["tf32"] == 385
    for name, one in known.items():
        assert name == f"sm_{one.arch}"
        assert not one.present


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_default_target_stands_in():
    assert local_gpu() is None
    assert card("auto") == card(None) == cards()["sm_90"]
    assert card("H100").name == "H100"
    assert card("rtx-4090").arch == 89


@pytest.mark.usefixtures("two_gpus")
def test_the_gpu_of_this_machine():
    assert local_gpu().name == "H200"
    assert local_gpu().present
    assert card("auto").present
    assert card("sm_90").present
    assert not card("sm_80").present
    assert [gpu.memory_mb for gpu in devices.gpus()] == [143771, 81920]


@pytest.mark.usefixtures("two_gpus")
def test_the_visible_gpu_counts(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert (local_gpu().name, local_gpu().arch) == ("A100", 80)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert local_gpu() is None


@pytest.mark.parametrize(
    ("name", "arch", "known"),
    [
        ("NVIDIA H100 PCIe", 90, "H100 PCIe"),
        ("NVIDIA H100 80GB HBM3", 90, "H100"),
        ("NVIDIA GeForce RTX 4090", 89, "RTX 4090"),
        ("NVIDIA L4", 89, "L4"),
        ("NVIDIA GeForce RTX 4060", 89, "GeForce RTX 4060"),
        ("NVIDIA Something New", 103, "Something New"),
    ],
)
def test_names_of_the_driver(name, arch, known):
    found = card_of(name, arch)
    assert (found.name, found.arch, found.present) == (known, arch, True)
    assert found.bandwidth_gbs > 0


LIBCUDA = """
int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 16: *value = 24; return 0;       /* multiprocessors */
    case 13: *value = 2535000; return 0;  /* kHz */
    case 36: *value = 8501000; return 0;
    case 37: *value = 128; return 0;      /* bits of the bus */
    case 38: *value = 25165824; return 0; /* bytes of L2 */
    case 97: *value = 101376; return 0;
    }
    return 1;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_an_unknown_model_has_the_numbers_that_the_driver_tells(monkeypatch, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "0, NVIDIA GeForce RTX 4060, 8.9, 8188, 580.82.07"\n')
    program.chmod(0o755)
    (tmp_path / "cuda.c").write_text(LIBCUDA)
    library = [str(tmp_path / "libcuda.so.1"), str(tmp_path / "cuda.c")]
    subprocess.run(["cc", "-shared", "-fPIC", "-o", *library], check=True)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for ask in (devices.gpus, devices.cuda_facts_once):
        ask.cache_clear()
    try:
        found = local_gpu()
        assert (found.name, found.arch, found.sms) == ("GeForce RTX 4060", 89, 24)
        assert found.bandwidth_gbs == pytest.approx(272, abs=0.5)
        assert found.l2_bytes == 24 << 20
        assert found.tflops["fp32"] == pytest.approx(82.6 * 24 / 128, abs=0.1)
        assert "scaled from RTX 4090 (sm_89)" in devices.how_known(found)
        monkeypatch.setenv("LD_LIBRARY_PATH", "")
        devices.cuda_facts_once.cache_clear()
        assert "those of RTX 4090 (sm_89)" in devices.how_known(local_gpu())
    finally:
        for ask in (devices.gpus, devices.cuda_facts_once):
            ask.cache_clear()


@pytest.mark.usefixtures("two_gpus")
def test_of_a_known_model_nothing_is_guessed():
    assert devices.how_known(local_gpu()) == ""


def test_an_unknown_target_names_the_nearest():
    with pytest.raises(UsageError, match=r'"sm_9O" is unknown; did you mean "sm_90"\?'):
        card("sm_9O")


@pytest.mark.gpu
@pytest.mark.skipif(not shutil.which("nvidia-smi"), reason="needs an NVIDIA GPU")
def test_a_real_gpu_is_seen():
    assert local_gpu() is not None
    assert local_gpu().present


def test_nearest():
    assert nearest("rooflin", ["llama", "roofline", "uniform"]) == "roofline"
    assert nearest("ROOFLINE", ["llama", "roofline"]) == "roofline"
    assert nearest("x", []) == ""
    assert nearest("zzz", ["llama", "uniform"]) in ("llama", "uniform")

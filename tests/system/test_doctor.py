"""The doctor on this machine, and what it says of one that lacks things."""

from __future__ import annotations

import pytest

from mtmc_engine.system import compat, doctor
from mtmc_engine.system.doctor import examine
from mtmc_engine.system.model_file import bundled

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_the_suite_itself_needs_is_found(workshop):
    checks = {check.name: check for check in await examine(workshop)}
    assert len(checks) >= 15
    for check in checks.values():
        assert check.ok or not check.required, check
        assert bool(check.advice) is not check.ok, check
        assert check.found
    assert checks["model"].ok is (bundled() is not None)
    for name in ("torch", "triton", "ptxas", "compile", "interpreter", "isolation: memory"):
        assert checks[name].ok, checks[name]


async def test_what_is_missing_is_said_with_advice(workshop, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(doctor.model_file, "_PACKAGE", "no_such_package")
    monkeypatch.setattr(doctor, "_LLAMA_VERSION", "import no_such_llama")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    checks = {check.name: check for check in await examine(workshop)}
    for name in ("model", "llama.cpp", "c compiler"):
        assert not checks[name].ok
        assert checks[name].advice
    assert "no_such_llama" in checks["llama.cpp"].found
    assert not checks["folder: journals"].ok


async def test_versions():
    assert compat.numbers("2.13.0+cpu") == (2, 13, 0)
    assert compat.supported("torch", "2.9.1")
    assert not compat.supported("torch", "2.8.0")
    assert compat.supported("triton", "3.10.0")
    assert compat.version("torch")
    assert compat.version("no-such-package") == ""

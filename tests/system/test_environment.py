"""Environments of child processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtmc_engine.system.environment import private_folders, without_secrets, worker_environment


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "hf_token", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "X_CREDENTIALS"]
)
def test_secrets_are_left_out_by_name(name):
    assert without_secrets({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_addresses_with_a_password_are_left_out():
    environment = {"A": "https://me:pw@host/x", "B": "https://host:80/x", "C": "https://host/@x"}
    assert set(without_secrets(environment)) == {"B", "C"}


def test_interpretation_is_as_asked_whatever_the_user_has_set():
    user = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "8"}
    assert "TRITON_INTERPRET" not in worker_environment(user, interpret=False)
    assert worker_environment({}, interpret=True)["TRITON_INTERPRET"] == "1"
    assert worker_environment(user, interpret=False)["OMP_NUM_THREADS"] == "1"
    assert worker_environment({}, interpret=False)["TRITON_DEFAULT_FP_FUSION"] == "1"


def test_caches_and_temporary_files_are_apart():
    chosen = private_folders(Path("/t"), Path("/c"))
    assert chosen["TMPDIR"] == "/t"
    assert chosen["TRITON_CACHE_DIR"] == "/c/triton"

"""Environments of child processes: no secrets, one thread, caches where they are told to be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|_SOCK$|BUS_ADDRESS|AGENT_INFO", re.IGNORECASE
)
_SECRET_VALUE = re.compile(r"://[^/\s@]*:[^/\s@]+@")

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold no key, token, secret or password, and no way to who holds them."""
    return {
        name: value
        for name, value in environment.items()
        if not _SECRET_NAME.search(name) and not _SECRET_VALUE.search(value)
    }


def worker_environment(environment: Mapping[str, str], interpret: bool) -> dict[str, str]:
    """The environment of a process that runs Triton, either interpreted or compiled.

    FP fusion is set to Triton's own default, since 3.9 warns where it is left open.
    """
    chosen = without_secrets(environment) | ONE_THREAD
    chosen.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    chosen.pop("TRITON_INTERPRET", None)
    if interpret:
        chosen["TRITON_INTERPRET"] = "1"
    return chosen


def private_folders(temp: Path, cache: Path) -> dict[str, str]:
    """Variables that keep temporary files in `temp` and compiled kernels in `cache`."""
    return {
        "TMPDIR": str(temp),
        "TEMP": str(temp),
        "TMP": str(temp),
        "TRITON_HOME": str(cache),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TORCH_EXTENSIONS_DIR": str(cache / "extensions"),
        "CUDA_CACHE_PATH": str(cache / "cuda"),
    }

"""The exported kernel of the replayed session, on its own."""

import os
import subprocess
import sys
from pathlib import Path


def exported_test(out: Path) -> subprocess.CompletedProcess:
    """Its own test, in Triton's interpreter."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_gated_softmax.py"],
        cwd=out,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

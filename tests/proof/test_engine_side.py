"""The engine's side of proof loads nothing heavy."""

import subprocess
import sys

HEAVY = ("torch", "triton", "numpy", "sympy")


def test_no_heavy_imports():
    code = (
        "import sys, mtmc_engine.proof.prove, mtmc_engine.proof.confirm, mtmc_engine.proof.check;"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"

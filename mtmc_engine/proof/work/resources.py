"""Registers and spills of a compiled kernel, by the disassembler that Triton bundles."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")


@dataclass(frozen=True)
class Usage:
    """Registers per thread, and bytes per thread that did not fit into registers."""

    registers: int
    spill_bytes: int


def usage(cubin: bytes) -> Usage | None:
    """Reads a cubin with cuobjdump; None where it is not there or says something else."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            said = subprocess.run(
                [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            return None
    found = _USAGE.search(said.stdout)
    if found is None:
        return None
    registers, stack, local = map(int, found.groups())
    return Usage(registers, stack + local)

"""Jobs of the doctor: each tries one thing for real in a worker."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Report = Callable[[Any], None]


def run_kernel(arguments: dict[str, Any], report: Report) -> list[float]:
    """Add one to 0, 1, 2, 3 in a Triton kernel on `arguments["device"]`; the result."""
    import torch

    from mtmc_engine.system.probe_kernel import add_one

    x = torch.arange(4, dtype=torch.float32, device=arguments["device"])
    out = torch.empty_like(x)
    add_one[(1,)](x, out, 4, BLOCK=4)
    return [float(value) for value in out.cpu()]


def compile_kernel(arguments: dict[str, Any], report: Report) -> int:
    """Compile that kernel ahead of time for `arguments["arch"]`; bytes of machine code."""
    from triton import compile as triton_compile
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from mtmc_engine.system.probe_kernel import add_one

    source = ASTSource(
        add_one,
        signature={"x_ptr": "*fp32", "out_ptr": "*fp32", "n_elements": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 128},
    )
    compiled = triton_compile(source, target=GPUTarget("cuda", arguments["arch"], 32))
    return len(compiled.asm["cubin"])


def wait(arguments: dict[str, Any], report: Report) -> None:
    """Do nothing for a minute, so that a limit is what ends it."""
    time.sleep(60)


def folder(arguments: dict[str, Any], report: Report) -> str:
    """Where temporary files go."""
    import tempfile

    return tempfile.gettempdir()


def fork(arguments: dict[str, Any], report: Report) -> None:
    """Start more processes than any candidate needs, all of which wait."""
    for _ in range(64):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(60)


def reach(arguments: dict[str, Any], report: Report) -> list[str]:
    """What can be reached of the outside: "network", "processes", and so on.

    arguments: the engine's process number, a port that it listens on, a folder, and a file in it
    that should be hidden.
    """
    tries: dict[str, Callable[[], object]] = {
        "network": lambda: socket.create_connection(("127.0.0.1", arguments["port"]), 2).close(),
        "processes": lambda: os.kill(arguments["engine"], 0),
        "environment": lambda: Path(f"/proc/{arguments['engine']}/environ").read_bytes(),
        "disk": lambda: Path(arguments["folder"], "written").write_text("by a candidate"),
        "secrets": lambda: Path(arguments["secret"]).read_text().index("seen"),
    }
    return [name for name, attempt in tries.items() if _works(attempt)]


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, ValueError):
        return False
    return True

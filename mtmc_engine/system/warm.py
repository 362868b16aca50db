"""The warm parent: a process with torch and Triton imported that forks one child per job.

Started by the engine as `python -P -c … KIND FD`. It runs nothing itself and never touches a GPU,
since a forked child cannot use its parent's CUDA context.
"""

from __future__ import annotations

import array
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from mtmc_engine.system.processes import adopt_orphans, end_with_parent, kill_descendants
from mtmc_engine.system.supervise import Request, supervise

# Imported once here instead of in every job.
_PRELOAD = {
    "device": ("torch", "torch.export", "triton", "triton.language", "triton.compiler"),
    "interpret": ("torch", "triton", "triton.language", "triton.runtime.interpreter"),
}


def main(kind: str, control_fd: int) -> None:
    """Serve jobs that arrive on `control_fd` until its other end closes."""
    end_with_parent(os.getppid(), signal.SIGTERM)
    adopt_orphans()
    control = socket.socket(fileno=control_fd)
    facts = _preload(kind)
    root = Path(tempfile.mkdtemp(prefix="mtmc-"))
    waker = _wake_on_signals()
    control.send(msgspec.json.encode(facts | {"root": str(root)}))
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would unshare the pages of every child
    try:
        _serve(control, waker, root)
    finally:
        kill_descendants()
        shutil.rmtree(root, ignore_errors=True)

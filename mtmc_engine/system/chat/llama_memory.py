"""How long a context a local model gets: what it was trained on, as far as memory goes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.model_file import ModelFacts

# A prompt of ours and its reply take some 10,000 tokens; a longer context only costs memory.
MOST_TOKENS = 32_768
LEAST_TOKENS = 1_024
_UNSTATED_CONTEXT = 4_096
# Of scratch memory, logits and the interpreter.
_SPARE_BYTES = 512 << 20


def context_tokens(facts: ModelFacts, free_bytes: int) -> int:
    """Tokens of context for a model: at most half of what is free beside its weights.

    Raises UsageError where not even a short context fits.
    """
    wanted = min(facts.context or _UNSTATED_CONTEXT, MOST_TOKENS)
    if not facts.kv_bytes:
        return min(wanted, _UNSTATED_CONTEXT)
    room = (free_bytes - facts.size_bytes - _SPARE_BYTES) // 2
    fitting = max(0, room) // facts.kv_bytes
    if fitting < min(wanted, LEAST_TOKENS):
        raise UsageError(
            f"{facts.path} ({facts.size_bytes / 1e9:.1f} GB) does not fit the free memory "
            f"({free_bytes / 1e9:.1f} GB): close other programs, or choose a smaller model."
        )
    return min(wanted, fitting)


def free_memory_bytes() -> int:
    """Memory that new programs can use on this machine, within the limit of a container."""
    free = [_available(), *_container_room()]
    return min(free)


def _available() -> int:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _container_room() -> list[int]:
    folder = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # "max" is no number: no limit
        most = int((folder / "memory.max").read_text())
        return [max(0, most - int((folder / "memory.current").read_text()))]
    return []

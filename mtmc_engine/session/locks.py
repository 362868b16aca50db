"""Which process owns a session: an advisory lock beside the journal.

A file of its own, since closing any descriptor of a database drops SQLite's own locks.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from mtmc_engine.core.errors import UsageError

# A run that was just told to end still holds its session for a moment.
PATIENCE_S = 3.0


def take(path: Path) -> int | None:
    """Hold `path` for this process: a descriptor to release, None where locks are unsupported.

    Raises UsageError where another process holds it beyond the patience.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise UsageError(
                    f"Session {path.stem} is still running: stop it before resuming it."
                ) from None
            time.sleep(0.05)
        except OSError:
            os.close(descriptor)
            return None
        else:
            return descriptor


def release(descriptor: int | None) -> None:
    """Let others have it."""
    if descriptor is not None:
        os.close(descriptor)


def held(path: Path) -> bool:
    """Whether a living process holds it."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False

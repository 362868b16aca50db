"""Starting a host: a Python child that speaks JSON lines on pipes of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO, NamedTuple

_IMPORT_ROOT = Path(__file__).parents[2]


def host_command(module: str) -> list[str]:
    """The command line that runs `main()` of a module of ours.

    With -P: modules of the user's folder, such as a json.py, stay out of the host.
    """
    start = (
        f"import sys; sys.path.append({str(_IMPORT_ROOT)!r}); "
        f"from {module} import main; sys.exit(main())"
    )
    return [sys.executable, "-P", "-c", start]


class Streams(NamedTuple):
    """The protocol's own ends of the pipes."""

    requests: BinaryIO
    replies: BinaryIO


def private_streams() -> Streams:
    """Take the protocol off file descriptors 0 and 1; called in the host.

    Native libraries print to 1 and 2; from here on 1 is what 2 is, the log.
    """
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Streams(requests, replies)

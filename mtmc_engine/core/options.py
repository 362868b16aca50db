"""What a run was asked to do: the command line's options as the engine reads them."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class RunOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `python -m mtmc_engine run`.

    file:   the user's file.
    yes:    the policy decides, nobody is asked.
    steps:  most attempts; None: as many as a plan of 8 kept steps needs, within a bound.
    planner, coder, target: "" for what the configuration says.
    until:  stop once the best program is this many times faster than the original.
    export: folder for the answer; None: no export. "": beside the user's file.
    watch:  follow changes of the user's file.
    """

    file: str
    yes: bool = False
    steps: int | None = None
    until: float | None = None
    planner: str = ""
    coder: str = ""
    target: str = ""
    export: str | None = None
    seed: int = 0
    resume: bool = False
    watch: bool = True


encode_options = msgspec.json.Encoder().encode
decode_options = msgspec.json.Decoder(RunOptions).decode

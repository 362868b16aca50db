"""What a run was asked to do: the command line's options as the engine reads them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

# What every reader of JSON keeps exactly.
MOST_WHOLE = 2**53 - 1
MOST_STEPS = 10_000
MOST_RATIO = 1e6
MOST_JOBS = 1024
# More candidates at once than this cost more than they can bring.
MOST_SAMPLES = 16

Seed = Annotated[int, Meta(ge=0, le=MOST_WHOLE)]
_Count = Annotated[int, Meta(ge=1, le=MOST_WHOLE)]
_Positive = Annotated[float, Meta(gt=0)]


class RunOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `python -m mtmc_engine run`.

    file:   the user's file.
    reference: "NAME" or "FILE:NAME" of what it should compute; "": what the file itself says.
    yes:    the policy decides, nobody is asked.
    steps:  most attempts; None: as many as a plan of 8 kept steps needs, within a bound.
    planner, coder, target: "" for what the configuration says.
    until:  stop once the best program is this many times faster than the original.
    export: folder for the answer; None: no export. "": beside the user's file.
    watch:  follow changes of the user's file.
    samples: candidates that a language model is asked for at once; None: the configuration says.
    budget_tokens, budget_usd, budget_seconds: what language models may use in the session;
            seconds are those of waiting for them. None: the configuration says.
    read_prompts: nothing is sent to a language model before the client answers `send`.
    timings: file of recorded timings that are replayed in place of a GPU's; for tests.
    """

    file: str
    yes: bool = False
    steps: Annotated[int, Meta(ge=1, le=MOST_STEPS)] | None = None
    until: Annotated[float, Meta(gt=1, le=MOST_RATIO)] | None = None
    planner: str = ""
    coder: str = ""
    target: str = ""
    export: str | None = None
    seed: Seed = 0
    resume: bool = False
    watch: bool = True
    samples: Annotated[int, Meta(ge=1, le=MOST_SAMPLES)] | None = None
    budget_tokens: _Count | None = None
    budget_usd: _Positive | None = None
    budget_seconds: _Positive | None = None
    read_prompts: bool = False
    timings: str = ""
    reference: str = ""


encode_options = msgspec.json.Encoder().encode
decode_options = msgspec.json.Decoder(RunOptions).decode

"""The planner's host: a child process that keeps one model loaded and scores phrases.

`python -m mtmc_engine.planner.host.serve` reads requests and writes replies, one JSON object a
line; a reply carries its request's id. Requests:

    {"id", "op": "load", "path", "threads", "n_ctx"}  -> {"id", "n_ctx", "n_vocab", "seconds"}
    {"id", "op": "prime", "prefix"}                   -> {"id", "prefix_tokens", "seconds"}
    {"id", "op": "score", "prefix", "changing", "phrases"} -> {"id", fields of Reading}

What cannot be served is answered {"id", "error"}; any other failure ends the process with a
traceback in its log. The end of standard input ends it too.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from mtmc_engine.planner.reading import Refused
from mtmc_engine.system import kernel
from mtmc_engine.system.host_process import Streams, private_streams

if TYPE_CHECKING:
    from mtmc_engine.planner.host.scorer import Scorer

# Enough for a long prefix, the changing part and every phrase; 47 MB with the bundled model.
DEFAULT_CONTEXT = 2048


class Load(Struct, frozen=True, tag_field="op", tag="load"):
    """Load a model file; the caller has checked it. threads: for decoding."""

    id: int
    path: str
    threads: int
    n_ctx: int = DEFAULT_CONTEXT


class Prime(Struct, frozen=True, tag_field="op", tag="prime"):
    """Read the stable prefix ahead of the first decision."""

    id: int
    prefix: str


class Score(Struct, frozen=True, tag_field="op", tag="score"):
    """Score at least one phrase after prefix + changing."""

    id: int
    prefix: str
    changing: str
    phrases: tuple[str, ...]


Request = Load | Prime | Score


def load(request: Load) -> tuple[Scorer, dict[str, Any]]:
    """A scorer with the model of `request`, and the reply. Raises Refused."""
    began = time.perf_counter()
    from mtmc_engine.planner.host.context import Context
    from mtmc_engine.planner.host.scorer import Scorer

    context = Context(request.path, request.threads, request.n_ctx)
    facts = {"n_ctx": context.n_ctx, "n_vocab": context.n_vocab}
    return Scorer(context), {**facts, "seconds": time.perf_counter() - began}


def answer(scorer: Scorer, request: Prime | Score) -> dict[str, Any]:
    """The reply to a request of a loaded model. Raises Refused."""
    if isinstance(request, Score):
        scores = scorer.score(request.prefix, request.changing, request.phrases)
        reply: dict[str, Any] = msgspec.to_builtins(scores)
        return reply
    began = time.perf_counter()
    count = scorer.prime(request.prefix)
    return {"prefix_tokens": count, "seconds": time.perf_counter() - began}


def serve(streams: Streams) -> None:
    """Answer requests until their end. The first must be a load."""
    decode = msgspec.json.Decoder(Request).decode
    scorer: Scorer | None = None
    for line in streams.requests:
        request = decode(line)
        try:
            if isinstance(request, Load):
                scorer, reply = load(request)
            elif scorer is None:
                reply = {"error": "No model is loaded: send a load request first."}
            else:
                reply = answer(scorer, request)
        except Refused as error:
            reply = {"error": str(error)}
        streams.replies.write(msgspec.json.encode({"id": request.id, **reply}) + b"\n")
        streams.replies.flush()


def main() -> int:
    """Serve on standard input and output; a decoding that nobody waits for ends with the engine."""
    kernel.end_with_parent(os.getppid(), signal.SIGKILL)
    serve(private_streams())
    return 0


if __name__ == "__main__":
    sys.exit(main())

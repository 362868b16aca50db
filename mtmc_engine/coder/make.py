"""Coders by name, as `--coder` takes them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from mtmc_engine.coder.builtin import BuiltinCoder
from mtmc_engine.coder.chain import ChainCoder
from mtmc_engine.coder.llm.coder import LanguageModelCoder
from mtmc_engine.coder.llm.setting import CoderSetting
from mtmc_engine.coder.seam import Coder
from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.chat.endpoints import endpoint
from mtmc_engine.system.chat.llama_chat import LlamaChat
from mtmc_engine.system.chat.openai_chat import OpenAIChat
from mtmc_engine.system.suggest import nearest

SPECS = ("builtin", "openai:MODEL[@BASE_URL]", "llama:FILE.gguf")
_KINDS = tuple(spec.partition(":")[0] for spec in SPECS)


def make_coder(spec: str, setting: CoderSetting | None = None) -> Coder:
    """The coder of `spec`, not started yet: one of SPECS, or several with commas between them.

    setting: shared by all language models of the chain.
    Raises UsageError for an unknown or incomplete spec, a model file that cannot be used, an
    address that cannot be used, and a key that is missing.
    """
    links = [link.strip() for link in spec.split(",")]
    if not all(links):
        raise UsageError(
            f"The chain of coders {spec!r} has an empty link: write it as builtin,openai:MODEL."
        )
    repeated = next((link for link in links if links.count(link) > 1), None)
    if repeated is not None:
        raise UsageError(f"The chain of coders names {repeated!r} twice: once is enough.")
    for link in links:
        _check(link)
    shared = setting or CoderSetting()
    coders = [_link(link, shared) for link in links]
    return coders[0] if len(coders) == 1 else ChainCoder(coders)


def _check(link: str) -> None:
    """Raises UsageError where a link is of no known kind, or lacks what its kind needs."""
    kind, _, model = link.partition(":")
    if kind not in _KINDS:
        raise UsageError(
            f"There is no coder {link!r}: did you mean {nearest(kind, _KINDS)!r}? "
            f"Known are {', '.join(SPECS)}."
        )
    if kind == "builtin" and link != kind:
        raise UsageError(f"The built-in coder takes nothing after its name: write {kind!r}.")
    if kind == "openai" and not model:
        raise UsageError("Name the model: openai:MODEL or openai:MODEL@BASE_URL.")
    if kind == "llama" and not model:
        raise UsageError("Name the model's file: llama:FILE.gguf.")


def _link(link: str, setting: CoderSetting) -> Coder:
    kind, _, model = link.partition(":")
    if kind == "builtin":
        return BuiltinCoder()
    if kind == "openai":
        where = endpoint(model)
        return LanguageModelCoder(OpenAIChat(where.model, where.base_url), setting)
    if importlib.util.find_spec("llama_cpp") is None:
        raise UsageError("llama.cpp is not installed: pip install llama-cpp-python.")
    return LanguageModelCoder(LlamaChat(Path(model).expanduser()), setting, free=True)

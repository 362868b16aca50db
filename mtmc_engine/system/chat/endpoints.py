"""Where a model is served, and which variable of the environment holds the key for it.

A key goes to its own host only: each known host has its variable, all others have MTMC_API_KEY.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from mtmc_engine.core.errors import UsageError

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
OTHER_KEY = "MTMC_API_KEY"
LOCAL_KEY = "MTMC_LOCAL_API_KEY"

KEY_OF_HOST = {
    "api.openai.com": DEFAULT_KEY,
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.deepseek.com": "DEEPSEEK_API_KEY",
    "api.fireworks.ai": "FIREWORKS_API_KEY",
    "api.groq.com": "GROQ_API_KEY",
    "api.mistral.ai": "MISTRAL_API_KEY",
    "api.moonshot.ai": "MOONSHOT_API_KEY",
    "api.together.xyz": "TOGETHER_API_KEY",
    "api.x.ai": "XAI_API_KEY",
    "dashscope-intl.aliyuncs.com": "DASHSCOPE_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
_PATH_OF_HOST = {
    "api.groq.com": "/openai/v1",
    "dashscope-intl.aliyuncs.com": "/compatible-mode/v1",
    "generativelanguage.googleapis.com": "/v1beta/openai",
    "openrouter.ai": "/api/v1",
}
_LOCAL_NAME = re.compile(r"^(localhost|[^.]+|.+\.(local|localhost|internal|lan))$")


@dataclass(frozen=True)
class Endpoint:
    """A model at a server.

    base_url: resolved, as it is shown. key_variable: None where no key is sent.
    local: on this machine or its own network; needs no key.
    """

    model: str
    base_url: str
    key_variable: str | None
    local: bool


def endpoint(model_at: str) -> Endpoint:
    """Read "MODEL[@BASE_URL]". Raises UsageError, also where the host's key is missing."""
    model, at, url = model_at.partition("@http")
    if at:
        return resolve(model, f"http{url}")
    _, at, rest = model_at.rpartition("@")
    if at and re.search(r"[:/.]|^localhost", rest):
        raise UsageError(f'"{rest}" is no base URL: write it as http://{rest} or https://{rest}.')
    return resolve(model_at, None)


def resolve(model: str, base_url: str | None) -> Endpoint:
    """The endpoint of a model at a base URL, by default $OPENAI_BASE_URL or OpenAI's own.

    A base URL without a path gets the usual one. Raises UsageError for a missing model or key,
    and for a URL that cannot be used.
    """
    if not model:
        raise UsageError("Name the model: openai:MODEL or openai:MODEL@BASE_URL.")
    default = os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL
    parts = _checked(base_url or default)
    host = (parts.hostname or "").lower()
    url = _with_path(parts)
    local = _is_local(host)
    if parts.scheme == "http" and not local:
        raise UsageError(f"{url} would carry the prompt and the key in the clear: use https.")
    is_default = base_url is None or url == _with_path(urlsplit(default))
    return Endpoint(model, url, _key_variable(url, host, local, is_default), local)


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"The base URL cannot be read ({error}).") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("A base URL looks like https://host/v1 or http://localhost:8000/v1.")
    if parts.username is not None or parts.query or parts.fragment:
        raise UsageError(
            f"The base URL of {parts.hostname} must be a plain address: a key belongs in the "
            "environment, a query is not supported."
        )
    return parts


def _with_path(parts: SplitResult) -> str:
    path = parts.path.rstrip("/") or _PATH_OF_HOST.get((parts.hostname or "").lower(), "/v1")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _is_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bool(_LOCAL_NAME.match(host))
    return address.is_private or address.is_loopback or address.is_link_local


def _key_variable(url: str, host: str, local: bool, is_default: bool) -> str | None:
    if host in KEY_OF_HOST:
        wanted = [KEY_OF_HOST[host]]
    elif local:
        wanted = [LOCAL_KEY]
    else:
        wanted = [OTHER_KEY, DEFAULT_KEY] if is_default else [OTHER_KEY]
    for name in wanted:
        if os.environ.get(name, "").strip():
            return name
    if local:
        return None
    raise UsageError(f"{url} needs a key: set {wanted[0]} in the environment.")

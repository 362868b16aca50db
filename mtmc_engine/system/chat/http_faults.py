"""Failures of HTTP and of its library, as one sentence each. Imported only by the HTTP host."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import Any

import httpx2
import openai

from mtmc_engine.system.chat.endpoints import LOCAL_KEY, OTHER_KEY, Endpoint
from mtmc_engine.system.chat.estimate import tokens_of
from mtmc_engine.system.chat.retry_after import retry_after_s
from mtmc_engine.system.chat.types import Ask, Failure, FailureKind

_CONTEXT = re.compile(
    r"context[ _](length|window|size)|maximum context|too many tokens|prompt is too long", re.I
)
_FORMAT = re.compile(r"response_format|json_schema|json_object", re.I)
_NO_MONEY = re.compile(r"insufficient_quota|insufficient balance|exceeded your current quota", re.I)
_RATE = re.compile(r"rate.?limit|too many requests", re.I)
_KIND_OF_STATUS: dict[int, FailureKind] = {
    401: "unauthorised",
    402: "unauthorised",
    403: "unauthorised",
    404: "not_found",
    408: "server",
    413: "too_large",
    429: "rate_limited",
}
_WORDS: dict[FailureKind, tuple[str, str]] = {
    "not_found": (
        'does not know "{model}", or is no base URL',
        "check the model's name and the address, which mostly ends in /v1",
    ),
    "too_large": ("takes no prompt of this size", "use another server or model"),
    "rate_limited": ("takes no more requests for now", "wait a while"),
    "server": ("failed", "ask again later"),
    "bad_request": ("refused the request", "change what it names"),
}
_CHECK_NETWORK = "check the address and the network."
_SAID_CHARACTERS = 240


class Faults:
    """Turns what can be raised while asking one endpoint into failures. scrub: hides the key."""

    def __init__(self, endpoint: Endpoint, ask: Ask, scrub: Callable[[str], str]) -> None:
        self._at = endpoint.base_url
        self._endpoint = endpoint
        self._ask = ask
        self._scrub = scrub

    def failure(self, error: Exception) -> Failure:
        """The failure that an exception of the HTTP library means."""
        match error:
            case openai.APIStatusError():
                failure = self._status(error)
            case openai.APITimeoutError() if isinstance(error.__cause__, httpx2.ConnectTimeout):
                failure = Failure("refused", f"{self._at} does not answer: {_CHECK_NETWORK}")
            case openai.APITimeoutError() | TimeoutError():
                failure = self.timeout()
            case openai.APIConnectionError():
                failure = self._connection(error)
            case openai.APIError():
                failure = self._in_stream(error)
            case ValueError():  # JSON and UTF-8 that are none
                failure = self.protocol("it sent what is not JSON")
            case AttributeError() | TypeError() | KeyError() | IndexError():
                failure = self.protocol("it sent JSON of another form")
            case _:
                what = self._scrub(f"{type(error).__name__}: {error}")
                failure = self.protocol(f"the reply could not be read ({_line(what)})")
        return failure

    def timeout(self) -> Failure:
        return Failure(
            "timeout",
            f"{self._at} did not finish its reply within {self._ask.timeout_s:g} s: allow more "
            "time, or ask a faster model.",
        )

    def protocol(self, what: str) -> Failure:
        return Failure(
            "protocol",
            f"{self._at} does not answer as Chat Completions do: {what}; check that the base URL "
            "is that of a compatible server.",
        )

    def empty(self, content_type: str) -> Failure:
        """A stream without any event; llama_cpp.server ends one so where its model fails."""
        if "event-stream" not in content_type:
            return self.protocol(f"it sent {content_type or 'no stream'} instead of events")
        return Failure(
            "protocol",
            f"{self._at} sent an empty stream, as some servers do where a prompt exceeds the "
            f"context (this one has about {tokens_of(self._ask.messages):,} tokens): look into "
            "the server's log.",
        )

    def cut(self, limit: str) -> Failure:
        return Failure(
            "protocol",
            f"The reply from {self._at} was cut off after {limit}: it does not end; check the "
            "server, or ask another model.",
        )

    def broken(self) -> Failure:
        return Failure(
            "reset",
            f"The connection to {self._at} broke before the reply was whole: ask again, or look "
            "into the server's log.",
        )

    def _connection(self, error: openai.APIConnectionError) -> Failure:
        causes = _causes(error)
        if any(isinstance(cause, httpx2.LocalProtocolError) for cause in causes):
            return self.unusable_key()
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            why = f"The host of {self._at} is not known: {_CHECK_NETWORK}"
        elif any("certificate" in str(cause).lower() for cause in causes):
            why = (
                f"The certificate of {self._at} is not accepted here: check the address, or set "
                "SSL_CERT_FILE to the authority that signed it."
            )
        elif any(isinstance(cause, httpx2.ProxyError) for cause in causes):
            why = f"The proxy on the way to {self._at} refuses: check HTTPS_PROXY."
        elif any(isinstance(cause, httpx2.ConnectError) for cause in causes):
            why = (
                f"No server answers at {self._at} (connection refused): start it, or check the "
                "address."
            )
        else:
            return self.broken()
        return Failure("refused", why)

    def unusable_key(self) -> Failure:
        return Failure(
            "unauthorised",
            f"{self._endpoint.key_variable} holds characters that no key has: set it to the bare "
            "key.",
        )

    def _in_stream(self, error: openai.APIError) -> Failure:
        """An error event within a stream that began well."""
        said = self._said(error)
        if _CONTEXT.search(said):
            return self._context(said, None)
        kind: FailureKind = "rate_limited" if _RATE.search(f"{error.code} {said}") else "server"
        return Failure(kind, f"{self._at} failed amid its reply{_quoted(said)}: ask again later.")

    def _status(self, error: openai.APIStatusError) -> Failure:
        status, said = error.status_code, self._said(error)
        kind = _KIND_OF_STATUS.get(status, "server" if status >= 500 else "bad_request")
        if _CONTEXT.search(f"{error.code} {said}") and kind in ("bad_request", "server"):
            return self._context(said, status)
        if kind == "rate_limited" and _NO_MONEY.search(f"{error.code} {said}"):
            kind = "unauthorised"
        return Failure(
            kind,
            self._sentence(kind, status, said),
            status=status,
            retry_after_s=retry_after_s(error.response.headers),
            format_refused=self._ask.response_format is not None and bool(_FORMAT.search(said)),
        )

    def _context(self, said: str, status: int | None) -> Failure:
        return Failure(
            "context",
            f"The prompt does not fit {self._ask.model} at {self._at}{_quoted(said)}: use a model "
            "with a longer context.",
            status,
        )

    def _sentence(self, kind: FailureKind, status: int, said: str) -> str:
        if kind == "unauthorised":
            return self._unauthorised(status)
        if status < 400:
            return f"{self._at} redirects elsewhere (HTTP {status}): give the final address."
        what, advice = _WORDS[kind]
        what = what.format(model=self._ask.model)
        return f"{self._at} {what} (HTTP {status}{_after(said)}): {advice}."

    def _unauthorised(self, status: int) -> str:
        """What the server says is left out: some quote the key."""
        variable = self._endpoint.key_variable
        if variable is None:
            wanted = LOCAL_KEY if self._endpoint.local else OTHER_KEY
            return f"{self._at} wants a key (HTTP {status}): set {wanted} in the environment."
        if status in (402, 429):
            return (
                f"The account of the key in {variable} has nothing left at {self._at} "
                f"(HTTP {status}): top it up, or use another model."
            )
        return f"{self._at} refused the key in {variable} (HTTP {status}): check that variable."

    def _said(self, error: openai.APIError) -> str:
        body: Any = error.body
        text = body.get("message") if isinstance(body, dict) else None
        text = text if isinstance(text, str) else error.message
        return _line(self._scrub(text))


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _line(text: str) -> str:
    """One line of bounded length, without what a terminal could take as a command."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= _SAID_CHARACTERS else f"{text[:_SAID_CHARACTERS]}…"


def _quoted(said: str) -> str:
    return f' ("{said.rstrip(".")}")' if said else ""


def _after(said: str) -> str:
    return f', "{said.rstrip(".")}"' if said else ""

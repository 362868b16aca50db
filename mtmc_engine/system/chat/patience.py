"""Asking again: after broken connections a few times, after a rate limit as long as is bearable."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from mtmc_engine.system.chat.types import Ask, Chat, ChatFailed, OnPart, RateLimited, Reply

# (reason, seconds, tries left): a wait begins. What was streamed so far is void.
OnWait = Callable[[str, float, int], None]

_PASSING = ("refused", "reset", "server", "died")


@dataclass(frozen=True)
class Policy:
    """How patient to be.

    tries: requests that may end in a passing error, the first included.
    first_wait_s: after the first error or rate limit; doubled each time, up to most_wait_s.
    most_retry_after_s: the longest wait that a server may ask for without the user's word.
    most_limited_s: of waits for one request's rate limits together.
    """

    tries: int = 4
    first_wait_s: float = 1.0
    most_wait_s: float = 30.0
    most_retry_after_s: float = 120.0
    most_limited_s: float = 300.0


PATIENT = Policy()


async def ask_patiently(
    chat: Chat, ask: Ask, on_part: OnPart, waits: OnWait, policy: Policy = PATIENT
) -> Reply:
    """Ask until there is a reply.

    A rate limit (429) is waited for outside the budget of tries, as long as the server says.
    Raises RateLimited where that is too long, and ChatFailed for all that asking again cannot
    help, or has not helped.
    """
    errors = limits = 0
    limited_s = 0.0
    while True:
        try:
            return await chat.ask(ask, on_part)
        except ChatFailed as failed:
            if failed.kind == "rate_limited":
                seconds = _wait_s(failed, limits, policy)
                limits += 1
                limited_s += seconds
                if seconds > policy.most_retry_after_s or limited_s > policy.most_limited_s:
                    raise RateLimited(failed.failure) from failed
            else:
                seconds = _wait_s(failed, errors, policy)
                errors += 1
                too_long = seconds > policy.most_retry_after_s
                if failed.kind not in _PASSING or errors >= policy.tries or too_long:
                    raise
            waits(str(failed), seconds, policy.tries - errors)
        await asyncio.sleep(seconds)


def _wait_s(failed: ChatFailed, earlier: int, policy: Policy) -> float:
    """What the server asks for, else twice as long each time.

    Up to a quarter more, so that parallel requests do not come back all at once.
    """
    own = min(policy.most_wait_s, policy.first_wait_s * 2**earlier)
    asked = failed.retry_after_s
    return (own if asked is None else asked) * random.uniform(1.0, 1.25)

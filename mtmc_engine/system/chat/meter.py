"""What language models use in a session, and the limits of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from mtmc_engine.core.chat import Usage
from mtmc_engine.system.chat.prices import Prices, load_prices


class Meter:
    """Adds up tokens, money and time.

    limit_tokens, limit_usd, limit_seconds: None is no limit.
    tokens: of prompts and replies. cost_usd: None once a model without a known price was used.
    seconds: in which at least one request ran; parallel ones count once.
    prices: by default the user's table and the shipped one.
    """

    def __init__(
        self,
        limit_tokens: int | None = None,
        limit_usd: float | None = None,
        limit_seconds: float | None = None,
        prices: Prices | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit_tokens = limit_tokens
        self.limit_usd = limit_usd
        self.limit_seconds = limit_seconds
        self.tokens = 0
        self.cost_usd: float | None = 0.0
        self.seconds = 0.0
        self._prices = prices or load_prices()
        self._clock = clock
        self._counted_until = -float("inf")
        self._unpriced = ""

    def restore(self, tokens: int, cost_usd: float | None, seconds: float) -> None:
        """Continue from what a resumed session had used."""
        self.tokens, self.cost_usd, self.seconds = tokens, cost_usd, seconds
        self._unpriced = "" if cost_usd is not None else "a model used before"

    def add(
        self, usage: Usage | None, model: str, seconds: float, free: bool = False
    ) -> float | None:
        """Count a request that has just ended; its cost in USD, None where the price is unknown.

        usage: None where nothing is known of it. free: the model runs in a process of ours.
        """
        now = self._clock()
        self.seconds += max(0.0, now - max(self._counted_until, now - seconds))
        self._counted_until = now
        if usage is None:
            return 0.0
        self.tokens += usage.prompt + usage.completion
        cost = 0.0 if free else self._prices.cost_usd(model, usage)
        if cost is None:
            self.cost_usd, self._unpriced = None, self._unpriced or model
        elif self.cost_usd is not None:
            self.cost_usd += cost
        return cost

    def exceeded(self) -> str | None:
        """One sentence where a limit is reached, or cannot be kept; else None."""
        if self.limit_tokens is not None and self.tokens >= self.limit_tokens:
            return f"The budget of {self.limit_tokens:,} tokens is used up ({self.tokens:,})."
        if self.limit_seconds is not None and self.seconds >= self.limit_seconds:
            return f"The budget of {self.limit_seconds:g} s is used up ({self.seconds:.0f} s)."
        if self.limit_usd is None:
            return None
        if self.cost_usd is None:
            return unpriced_sentence(self._unpriced)
        if self.cost_usd >= self.limit_usd:
            return f"The budget of ${self.limit_usd:g} is used up (${self.cost_usd:.4f})."
        return None

    def refusal(self, model: str, free: bool = False) -> str | None:
        """As `exceeded`, also where asking `model` would leave the cost unknown under a limit."""
        if self.limit_usd is not None and not free and self._prices.of(model) is None:
            return unpriced_sentence(model)
        return self.exceeded()


def unpriced_sentence(model: str) -> str:
    """Why a budget in money cannot be kept with `model`."""
    return (
        f"The price of {model} is unknown, so that a budget in USD cannot be kept: add it to "
        "prices.toml in the configuration folder, or limit tokens instead."
    )

"""What language models may use in a session: the limits, the meter as an event, its restoring."""

from __future__ import annotations

from mtmc_engine.core.events import AnyEvent, BudgetChanged
from mtmc_engine.core.options import RunOptions
from mtmc_engine.system.chat.meter import Meter
from mtmc_engine.system.config import Config


def meter_of(options: RunOptions, config: Config) -> Meter:
    """A meter with the limits of a run; options win over the configuration.

    Raises UsageError where the user's table of prices cannot be read.
    """
    return Meter(
        options.budget_tokens or config.budget_tokens,
        options.budget_usd or config.budget_usd,
        options.budget_seconds or config.budget_seconds,
    )


def restore(meter: Meter, events: list[AnyEvent]) -> None:
    """Count what earlier runs of the session have used."""
    for event in events:
        if isinstance(event, BudgetChanged):
            meter.restore(event.tokens, event.cost_usd, event.seconds)


def budget_event(meter: Meter) -> BudgetChanged:
    """What was used, and the limits."""
    return BudgetChanged(
        meter.tokens,
        meter.cost_usd,
        meter.seconds,
        meter.limit_tokens,
        meter.limit_usd,
        meter.limit_seconds,
    )


def has_limit(meter: Meter) -> bool:
    """Whether anything is limited."""
    limits = (meter.limit_tokens, meter.limit_usd, meter.limit_seconds)
    return any(limit is not None for limit in limits)


def seconds_left(meter: Meter) -> float | None:
    """Of waiting for language models; None where that is not limited."""
    return None if meter.limit_seconds is None else meter.limit_seconds - meter.seconds


def use_up_time(meter: Meter) -> None:
    """Count a request that was ended because its time was over."""
    if meter.limit_seconds is not None:
        meter.restore(meter.tokens, meter.cost_usd, max(meter.seconds, meter.limit_seconds))

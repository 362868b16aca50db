"""Prices and the meter."""

from __future__ import annotations

import pytest

from mtmc_engine.core.chat import Usage
from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.chat.meter import Meter
from mtmc_engine.system.chat.prices import Price, Prices, load_prices

PRICES = Prices((Price("big-*", 10.0, 100.0, cached=1.0), Price("small", 1.0, 2.0)))


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_cost_of_a_request():
    usage = Usage(1_000_000, 100_000, cached=400_000)
    assert PRICES.cost_usd("big-1", usage) == pytest.approx(6.0 + 0.4 + 10.0)
    assert PRICES.cost_usd("small", usage) == pytest.approx(1.2)


@pytest.mark.parametrize("model", ["SMALL", "small-2026-03-05", "small@20260305"])
def test_names_of_a_model(model):
    assert PRICES.of(model).prompt == 1.0


@pytest.mark.parametrize("model", ["smaller", "small-pro", "the-small", ""])
def test_an_unknown_model_has_no_price(model):
    assert PRICES.of(model) is None
    assert PRICES.cost_usd(model, Usage(1, 1)) is None


def test_the_shipped_table_and_the_users_before_it(home):
    shipped = load_prices().of("gpt-5-mini")
    assert 0 < shipped.cached < shipped.prompt < shipped.completion
    folder = home / "config"
    folder.mkdir(parents=True)
    (folder / "prices.toml").write_text(
        '[[price]]\nmodel = "gpt-5-*"\nprompt = 7\ncompletion = 8\n'
    )
    assert load_prices().of("gpt-5-mini").prompt == 7
    assert load_prices().of("gpt-5").prompt == 1.25


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[price", "not valid TOML"),
        ('[[price]]\nmodel = "x"\nprompt = -1\ncompletion = 1', "prompt"),
        ('[[price]]\nmodel = "x"\nprompt = 1\ncompletion = 1\ncache = 1', "cache"),
        ('[[prices]]\nmodel = "x"', "prices"),
    ],
)
def test_a_table_that_is_wrong(tmp_path, text, said):
    (tmp_path / "prices.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        load_prices(tmp_path)


def test_the_meter_adds_up():
    meter = Meter(prices=PRICES)
    assert meter.add(Usage(1_000_000, 0), "small", 1.0) == pytest.approx(1.0)
    assert meter.add(Usage(10, 5), "model.gguf", 1.0, free=True) == 0.0
    assert (meter.tokens, meter.cost_usd) == (1_000_015, pytest.approx(1.0))
    assert meter.exceeded() is None


def test_an_unknown_price_makes_the_sum_unknown_for_good():
    meter = Meter(prices=PRICES)
    meter.add(Usage(1, 1), "small", 1.0)
    assert meter.add(Usage(1, 1), "mystery", 1.0) is None
    meter.add(Usage(1, 1), "small", 1.0)
    assert meter.cost_usd is None


def test_requests_at_the_same_time_count_once():
    clock = Clock()
    meter = Meter(prices=PRICES, clock=clock)
    clock.now = 110.0
    meter.add(Usage(1, 1), "small", 10.0)
    clock.now = 112.0
    meter.add(Usage(1, 1), "small", 12.0)
    clock.now = 150.0
    meter.add(None, "small", 5.0)
    assert meter.seconds == pytest.approx(17.0)


def test_limits():
    clock = Clock()
    meter = Meter(100, 0.01, 60.0, PRICES, clock)
    assert meter.exceeded() is None
    meter.add(Usage(90, 10), "small", 1.0)
    assert "100 tokens" in meter.exceeded()
    meter = Meter(None, 0.01, 60.0, PRICES, clock)
    meter.add(Usage(10_000, 0), "small", 1.0)
    assert "$0.01" in meter.exceeded()
    meter = Meter(None, None, 60.0, PRICES, clock)
    clock.now += 61
    meter.add(None, "small", 60.0)
    assert "60 s" in meter.exceeded()


def test_a_limit_in_money_needs_a_price():
    meter = Meter(limit_usd=1.0, prices=PRICES)
    assert "price of mystery is unknown" in meter.refusal("mystery")
    assert meter.refusal("model.gguf", free=True) is None
    assert meter.refusal("small") is None
    meter.add(Usage(1, 1), "mystery", 1.0)
    assert "price of mystery is unknown" in meter.exceeded()


def test_a_resumed_session_goes_on_from_what_it_had_used():
    meter = Meter(limit_tokens=100, prices=PRICES)
    meter.restore(99, 0.5, 3.0)
    meter.add(Usage(1, 0), "small", 0.0)
    assert meter.exceeded()
    assert meter.cost_usd == pytest.approx(0.500001)

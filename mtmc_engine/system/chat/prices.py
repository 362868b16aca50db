"""What tokens cost: a table that ships with the product, and the user's own before it."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mtmc_engine.core.chat import Usage
from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.paths import config_folder

FILE_NAME = "prices.toml"
_DATE = re.compile(r"[-@]20\d\d-?\d\d-?\d\d$")

_Usd = Annotated[float, Meta(ge=0)]


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """USD per million tokens. model: a pattern with * and ?. cached: None costs as prompt."""

    model: str
    prompt: _Usd
    completion: _Usd
    cached: _Usd | None = None

    def cost_usd(self, usage: Usage) -> float:
        """Of one request. Tokens of thinking are part of the completion."""
        cached = min(usage.cached or 0, usage.prompt)
        cached_usd = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt - cached
        return (
            fresh * self.prompt + cached * cached_usd + usage.completion * self.completion
        ) / 1e6


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    price: tuple[Price, ...] = ()


class Prices:
    """The prices in order of precedence."""

    def __init__(self, prices: tuple[Price, ...]) -> None:
        self._prices = prices

    def of(self, model: str) -> Price | None:
        """The price of a model; None where it is unknown."""
        names = (model.lower(), _DATE.sub("", model.lower()))
        for price in self._prices:
            if any(fnmatchcase(name, price.model.lower()) for name in names):
                return price
        return None

    def cost_usd(self, model: str, usage: Usage) -> float | None:
        """Of one request; None where the price is unknown."""
        price = self.of(model)
        return None if price is None else price.cost_usd(usage)


def load_prices(folder: Path | None = None) -> Prices:
    """The user's table from the configuration folder, then the shipped one.

    Raises UsageError for a user's table that cannot be read.
    """
    own = (folder or config_folder()) / FILE_NAME
    shipped = Path(__file__).with_name(FILE_NAME)
    prices = _read(own) if own.is_file() else ()
    return Prices(prices + _read(shipped))


def _read(path: Path) -> tuple[Price, ...]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(table, _Table).price
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} is no table of prices: {error}.") from error

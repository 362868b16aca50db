"""How language-model coders ask: what the session decides for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mtmc_engine.system.chat.meter import Meter
from mtmc_engine.system.chat.patience import PATIENT, Policy


@dataclass(frozen=True)
class CoderSetting:
    """meter: counts what all coders of a session use, and knows the limits.

    reply_tokens: cap of a first reply, thinking included; doubled where it was used up, at most
    `larger_caps` times. tries: calls for one candidate, whatever goes wrong.
    temperature: None leaves it to the server. seed: of models in this process, by sample.
    timeout_s: for one reply. patience: with servers that are busy or away.
    """

    meter: Meter = field(default_factory=Meter)
    reply_tokens: int = 8192
    larger_caps: int = 2
    tries: int = 4
    temperature: float | None = None
    seed: int = 0
    timeout_s: float = 600.0
    patience: Policy = PATIENT

"""Models that answer in the test's own process, and real ones in children."""

from __future__ import annotations

import pytest

from mtmc_engine.core.chat import Usage
from mtmc_engine.system.chat.types import ChatFailed, Failure, Reply


class ScriptedChat:
    """The Chat seam with scripted outcomes: replies' texts, failures, or functions of the ask."""

    name = "scripted"
    model = "scripted-1"
    address = "nowhere"
    context = None

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.asks = []

    async def ask(self, ask, on_part):
        self.asks.append(ask)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Failure):
            raise ChatFailed(outcome)
        on_part(outcome, False)
        return Reply(outcome, "", "stop", Usage(1, 1), 0.1)

    async def count(self, messages):
        return None

    async def close(self):
        pass


@pytest.fixture
def scripted():
    return ScriptedChat


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Caches and configuration of the test's own, and no keys of the user's."""
    monkeypatch.setenv("MTMC_HOME", str(tmp_path / "home"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MTMC_API_KEY", "MTMC_LOCAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"

"""Where a model is, and which key goes there."""

from __future__ import annotations

import pytest

from mtmc_engine.core.errors import UsageError
from mtmc_engine.system.chat.endpoints import endpoint
from mtmc_engine.system.chat.openai_chat import OpenAIChat, host_environment

KEYS = {
    "OPENAI_API_KEY": "sk-openai",
    "DEEPSEEK_API_KEY": "sk-deepseek",
    "GEMINI_API_KEY": "sk-gemini",
    "MTMC_API_KEY": "sk-other",
}


@pytest.fixture
def keys(monkeypatch):
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("spec", "model", "url", "variable", "local"),
    [
        ("gpt-5.4", "gpt-5.4", "https://api.openai.com/v1", "OPENAI_API_KEY", False),
        (
            "deepseek-flash@https://api.deepseek.com",
            "deepseek-flash",
            "https://api.deepseek.com/v1",
            "DEEPSEEK_API_KEY",
            False,
        ),
        (
            "gemini-2.5-pro@https://generativelanguage.googleapis.com",
            "gemini-2.5-pro",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            False,
        ),
        (
            "org/m@001@https://models.example/api/v3/",
            "org/m@001",
            "https://models.example/api/v3",
            "MTMC_API_KEY",
            False,
        ),
        ("m@http://localhost:8000", "m", "http://localhost:8000/v1", None, True),
        ("m@http://127.0.0.1:11434/v1/", "m", "http://127.0.0.1:11434/v1", None, True),
        ("m@http://[::1]:8000", "m", "http://[::1]:8000/v1", None, True),
        ("m@http://192.168.1.7:8000", "m", "http://192.168.1.7:8000/v1", None, True),
        ("m@http://gpu-box:8000", "m", "http://gpu-box:8000/v1", None, True),
        ("vendor/m@001", "vendor/m@001", "https://api.openai.com/v1", "OPENAI_API_KEY", False),
    ],
)
def test_addresses(spec, model, url, variable, local):
    found = endpoint(spec)
    assert (found.model, found.base_url) == (model, url)
    assert (found.key_variable, found.local) == (variable, local)


@pytest.mark.usefixtures("keys")
def test_the_default_can_be_set_elsewhere_and_has_the_default_key_only_then(monkeypatch):
    monkeypatch.delenv("MTMC_API_KEY")
    with pytest.raises(UsageError, match="set MTMC_API_KEY"):
        endpoint("m@https://gateway.example/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example")
    for spec in ("m", "m@https://gateway.example/v1"):
        found = endpoint(spec)
        assert (found.base_url, found.key_variable) == (
            "https://gateway.example/v1",
            "OPENAI_API_KEY",
        )
    for spec in ("m@https://gateway.example.evil/v1", "m@https://gateway.example/v1evil"):
        with pytest.raises(UsageError, match="set MTMC_API_KEY"):
            endpoint(spec)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("gpt-5.4", "set OPENAI_API_KEY"),
        ("m@https://api.deepseek.com", "set DEEPSEEK_API_KEY"),
        ("m@https://models.example", "set MTMC_API_KEY"),
        ("", "Name the model"),
        ("@http://localhost:8000", "Name the model"),
        ("m@localhost:8000", "http://localhost:8000"),
        ("m@models.example/v1", "https://models.example/v1"),
        ("m@http://models.example/v1", "use https"),
        ("m@http:///v1", "looks like"),
        ("m@http://localhost:port", "cannot be read"),
        ("m@https://models.example/v1?key=secret", "plain address"),
    ],
)
def test_addresses_that_cannot_be_used(spec, said):
    with pytest.raises(UsageError, match=said):
        endpoint(spec)


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(UsageError) as caught:
        endpoint("m@https://user:hunter2@models.example/v1")
    assert "hunter2" not in str(caught.value)


@pytest.mark.usefixtures("keys")
def test_the_host_gets_the_one_key_and_nothing_that_turns_it_elsewhere():
    more = {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://me:pw@proxy:3128",
        "OPENAI_CUSTOM_HEADERS": "X: y",
        "OPENAI_LOG": "debug",
        "OPENAI_ORG_ID": "org-1",
        "AWS_SECRET_ACCESS_KEY": "no",
    }
    chat = OpenAIChat("m", "https://api.deepseek.com")
    passed = host_environment(KEYS | more, chat.endpoint)
    assert passed == {
        "PATH": "/bin",
        "HTTPS_PROXY": more["HTTPS_PROXY"],
        "DEEPSEEK_API_KEY": "sk-deepseek",
    }
    passed = host_environment(KEYS | more, OpenAIChat("m").endpoint)
    assert passed["OPENAI_ORG_ID"] == "org-1"
    assert "OPENAI_LOG" not in passed

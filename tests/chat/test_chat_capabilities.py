"""The ladder of reply formats."""

from __future__ import annotations

import json

import pytest

from mtmc_engine.core.chat import Message
from mtmc_engine.system.chat.capabilities import Capabilities
from mtmc_engine.system.chat.types import Ask, ChatFailed, Failure

SCHEMA = {"type": "object", "properties": {"ranking": {"type": "array"}}, "required": ["ranking"]}
ASK = Ask("m", (Message("system", "You rank."), Message("user", "Rank.")))
GOOD, OTHER = '{"ready": true}', '{"greeting": "good morning"}'


def refused(status, kind="bad_request", format_refused=False):
    return Failure(kind, "It says no.", status, format_refused=format_refused)


async def climb(scripted, *outcomes):
    chat = scripted(*outcomes)
    return await Capabilities().rung(chat), chat


@pytest.mark.parametrize(
    ("outcomes", "rung"),
    [
        ([GOOD], "json_schema"),
        ([OTHER, OTHER], "json_object"),
        ([refused(400), OTHER], "json_object"),
        ([refused(422), OTHER], "json_object"),
        ([refused(404, "not_found"), OTHER], "json_object"),
        ([refused(500, "server", format_refused=True), OTHER], "json_object"),
        (["Good morning!", "Good morning!"], "plain"),
        ([refused(400), refused(400)], "plain"),
        (["", "[1]"], "plain"),
    ],
)
async def test_the_highest_rung_that_holds(scripted, outcomes, rung):
    found, chat = await climb(scripted, *outcomes)
    assert found == rung
    assert not chat.outcomes


@pytest.mark.parametrize(
    "failure", [refused(500, "server"), refused(401, "unauthorised"), refused(None, "refused")]
)
async def test_other_failures_are_not_about_the_format(scripted, failure):
    chat = scripted(failure, GOOD)
    with pytest.raises(ChatFailed):
        await Capabilities().rung(chat)
    assert await Capabilities().rung(chat) == "json_schema"


async def test_probed_once_and_remembered_by_endpoint_and_model(scripted):
    probes = []
    chat = scripted(OTHER, OTHER, "[]", "[]")
    ladder = Capabilities(on_reply=probes.append)
    for _ in range(2):
        await ladder.ask_json(chat, ASK, SCHEMA)
    assert len(chat.asks) == 4
    assert len(probes) == 2
    another = scripted(GOOD)
    another.address = "elsewhere"
    assert await Capabilities().rung(another) == "json_schema"
    assert await Capabilities().rung(chat) == "json_object"


async def test_each_rung_asks_in_its_own_way(scripted):
    asked = {}
    for rung, probes in {
        "json_schema": [GOOD],
        "json_object": [OTHER, OTHER],
        "plain": ["hi", "hi"],
    }.items():
        chat = scripted(*probes, "{}")
        chat.address = rung
        await Capabilities().ask_json(chat, ASK, SCHEMA)
        asked[rung] = chat.asks[-1]
    assert asked["json_schema"].messages == ASK.messages
    assert asked["json_schema"].response_format["json_schema"]["schema"] == SCHEMA
    assert asked["json_object"].response_format == {"type": "json_object"}
    assert asked["plain"].response_format is None
    for rung in ("json_object", "plain"):
        assert asked[rung].messages[0] == ASK.messages[0]
        assert json.dumps(SCHEMA) in asked[rung].messages[-1].content
        assert "JSON" in asked[rung].messages[-1].content


async def test_a_rung_that_no_longer_holds_is_stepped_down(scripted):
    chat = scripted(GOOD, refused(400), "{}")
    assert (await Capabilities().ask_json(chat, ASK, SCHEMA)).text == "{}"
    assert await Capabilities().rung(chat) == "json_object"


async def test_a_damaged_memory_is_probed_again(scripted, home):
    chat = scripted(GOOD, GOOD)
    await Capabilities().rung(chat)
    file = home / "cache" / "chat-capabilities.json"
    file.write_text('{"scripted-1 nowhere": "no such rung"}')
    assert await Capabilities().rung(chat) == "json_schema"
    assert len(chat.asks) == 2


async def test_a_cache_that_cannot_be_written_is_done_without(scripted, tmp_path):
    (tmp_path / "file").write_text("")
    ladder = Capabilities(tmp_path / "file" / "below")
    chat = scripted(GOOD, "{}", "{}")
    for _ in range(2):
        await ladder.ask_json(chat, ASK, SCHEMA)
    assert not chat.outcomes

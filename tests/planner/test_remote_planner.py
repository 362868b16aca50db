"""The remote planner: legal phrases only, however they are said, and the roofline where not."""

from __future__ import annotations

import pytest
from replay_server import ReplayServer

from mtmc_engine.core.action import Action
from mtmc_engine.planner.make import make_planner
from mtmc_engine.planner.remote import RemotePlanner, messages_for, phrases_in, scored
from mtmc_engine.schedule.legal import legal_actions
from mtmc_engine.system.chat.capabilities import Capabilities
from mtmc_engine.system.chat.meter import Meter
from mtmc_engine.system.chat.openai_chat import OpenAIChat

LEGAL = ["fuse r2 into r1", "retile r1 to 128x128x32", "retile r1 to b1024", "lower r1", "stop"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"ranking": ["lower r1", "stop"]}', ["lower r1", "stop"]),
        ('```json\n{"ranking": ["lower r1"]}\n```', ["lower r1"]),
        ('Sure: ["lower r1", "fuse r2 into r1"] is best.', ["lower r1", "fuse r2 into r1"]),
        ('{"ranking": [{"step": "Lower R1", "why": "x"}, {"step": "stop"}]}', ["lower r1", "stop"]),
        ('{"why": "stop", "ranking": ["lower r1"]}', ["lower r1"]),
        ("1. lower r1\n2) stop\n", ["lower r1", "stop"]),
        ('- "fuse r2 into r1".\n* `lower r1`', ["fuse r2 into r1", "lower r1"]),
        ("**fuse r2 into r1**", ["fuse r2 into r1"]),
        ("I would fuse r2 into r1 first, it saves 268 MB.", ["fuse r2 into r1"]),
        ("I would not stop here.", []),
        ("<think>stop</think>\nlower r1", ["lower r1"]),
        ('{"ranking": ["fuse r9 into r1", "rm -rf /", "lower r1"]}', ["lower r1"]),
        ('{"ranking": ["lower r1", "lower r1"]}', ["lower r1"]),
        ("", []),
        ("{", []),
        ("[[[[[[" * 1000, []),
        ('{"ranking": []}', []),
        ("lower  R1", ["lower r1"]),
    ],
)
def test_an_answer_is_read_tolerantly_and_says_legal_phrases_only(text, found):
    assert phrases_in(text, LEGAL) == found


def test_places_halve_and_the_rest_shares_one():
    legal = [Action(phrase.split()[0], phrase) for phrase in LEGAL]
    options = scored(legal, ["stop", "lower r1"])
    assert [option.action.phrase for option in options][:2] == ["stop", "lower r1"]
    assert options[0].probability == pytest.approx(2 * options[1].probability)
    assert sum(option.probability for option in options) == pytest.approx(1)
    assert len(options) == len(legal)


def steps_of(state):
    return legal_actions(state.task, state.schedule, state.device)


def planner_at(server, folder, notices, meter=None):
    chat = OpenAIChat("replay", server.base_url)
    return RemotePlanner(chat, notices.append, meter, Capabilities(folder))


async def test_a_ranking_decides(state, tmp_path):
    legal = steps_of(state)
    wanted = legal[-2].phrase
    script = {
        "reply": [
            {"when": "good morning", "text": '{"ready": true}', "times": 0},
            {"text": f'{{"ranking": ["{wanted}"]}}', "times": 0},
        ]
    }
    notices = []
    with ReplayServer(script) as server:
        planner = planner_at(server, tmp_path, notices)
        options = await planner.propose(state, legal)
        await planner.close()
        body = server.chats[-1].body
    assert options[0].action.phrase == wanted
    assert options[0].parts == {"remote": pytest.approx(options[0].probability)}
    assert not notices
    assert body["response_format"]["type"] == "json_schema"
    enum = body["response_format"]["json_schema"]["schema"]["properties"]["ranking"]["items"]
    assert enum["enum"] == [action.phrase for action in legal]


async def test_a_server_without_schemas_is_asked_in_words(state, tmp_path):
    legal = steps_of(state)
    script = {
        "json_schema": False,
        "json_object": False,
        "reply": [{"text": f"1. {legal[0].phrase}", "times": 0}],
    }
    notices = []
    with ReplayServer(script) as server:
        planner = planner_at(server, tmp_path, notices)
        options = await planner.propose(state, legal)
        await planner.close()
    assert options[0].action == legal[0]
    assert not notices


@pytest.mark.parametrize("reply", [{"text": "no idea"}, {"status": 500}, {"status": 401}])
async def test_where_there_is_no_ranking_the_roofline_decides(state, tmp_path, reply):
    legal = steps_of(state)
    expected = await make_planner("roofline").propose(state, legal)
    notices = []
    script = {"json_schema": False, "json_object": False, "reply": [{**reply, "times": 0}]}
    with ReplayServer(script) as server:
        planner = planner_at(server, tmp_path, notices)
        for _ in range(3):
            assert await planner.propose(state, legal) == expected
        calls = len(server.chats)
        await planner.propose(state, legal)
        assert len(server.chats) == calls
        await planner.close()
    assert len(notices) == 2
    assert notices[-1].endswith("The roofline planner decides from now on.")


async def test_a_ranking_that_breaks_off_is_counted(state, tmp_path):
    meter = Meter(limit_tokens=10)
    script = {"json_schema": False, "json_object": False}
    script["reply"] = [{"text": "1. stop", "cut_after": 3, "times": 0}]
    notices = []
    with ReplayServer(script) as server:
        planner = planner_at(server, tmp_path, notices, meter)
        await planner.propose(state, steps_of(state))
        used = meter.tokens
        await planner.propose(state, steps_of(state))
        await planner.close()
    assert used >= 100
    assert meter.tokens == used
    assert "budget of 10 tokens" in notices[1]


async def test_a_spent_budget_asks_nobody(state, tmp_path):
    meter = Meter(limit_tokens=1)
    meter.restore(5, 0.0, 0.0)
    notices = []
    with ReplayServer({"reply": []}) as server:
        planner = planner_at(server, tmp_path, notices, meter)
        await planner.propose(state, steps_of(state))
        await planner.close()
        assert not server.requests
    assert "budget" in notices[0]


def test_the_prompt_holds_state_and_steps(state):
    legal = steps_of(state)
    system, user = messages_for(state, legal)
    assert "JSON" in system.content
    for action in legal:
        assert f'"{action.phrase}"' in user.content
        assert action.reason in user.content


def test_a_planner_at_a_server_by_name():
    planner = make_planner("openai:m@http://127.0.0.1:9/v1")
    assert (planner.name, planner.address) == ("openai:m", "http://127.0.0.1:9/v1")

"""The pure parts of reading a stream: thoughts, secrets, slices, token estimates."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mtmc_engine.system.chat.collector import Collector
from mtmc_engine.system.chat.scrub import Scrubber


def collect(pieces, secret=""):
    parts = []
    collector = Collector(lambda text, thinking: parts.append((text, thinking)), secret)
    for piece in pieces:
        collector.add(piece)
    collector.finish()
    assert "".join(text for text, thinking in parts if thinking) == collector.thinking
    assert "".join(text for text, thinking in parts if not thinking) == collector.text
    return collector.thinking, collector.text


def cuts(text):
    """All ways to cut a text into pieces, some of them."""
    return st.lists(st.integers(1, max(1, len(text))), max_size=6).map(
        lambda ends: [
            text[begin:end]
            for begin, end in zip(
                [0, *sorted(set(ends))], [*sorted(set(ends)), len(text)], strict=True
            )
        ]
    )


@given(cuts("  <think>first a, </thin then b</think>\n\nanswer </think> more"))
def test_leading_thoughts_are_told_apart_wherever_the_stream_is_cut(pieces):
    assert collect(pieces) == ("first a, </thin then b", "\n\nanswer </think> more")


@given(cuts("code <think>x</think>"))
def test_a_tag_within_the_answer_is_text(pieces):
    assert collect(pieces) == ("", "code <think>x</think>")


@given(cuts("<thinner> than </think>"))
def test_what_only_looks_like_a_tag_is_text(pieces):
    assert collect(pieces) == ("", "<thinner> than </think>")


@given(cuts("<think>never ends"))
def test_thoughts_without_an_end_are_thoughts(pieces):
    assert collect(pieces) == ("never ends", "")


def test_a_reply_that_is_the_beginning_of_a_tag():
    assert collect(["<thi"]) == ("", "<thi")


@given(cuts("<thinking>sk-abc and sk-</thinking>abc sk-abcsk-abc s sk- sk-ab"))
def test_a_secret_is_left_out_wherever_the_stream_is_cut(pieces):
    thinking, text = collect(pieces, "sk-abc")
    assert (thinking, text) == ("[key] and sk-", "abc [key][key] s sk- sk-ab")


@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=4))
def test_a_scrubbed_stream_never_holds_the_secret(text, secret):
    scrubber = Scrubber(secret)
    out = "".join(map(scrubber.feed, text)) + scrubber.finish()
    assert secret not in out


def test_slices_come_in_time_not_in_tokens():
    parts = []
    collector = Collector(lambda text, thinking: parts.append(text))
    for _ in range(10_000):
        collector.add("token ")
    collector.finish()
    assert len(parts) < 100
    assert "".join(parts) == "token " * 10_000

"""The page about the protocol says what the schema says."""

from pathlib import Path
from typing import get_args

from mtmc_engine.core.events import AnyCommand, AnyEvent
from mtmc_engine.session.protocol_doc import page

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"


def test_page_is_current():
    made = "python -m mtmc_engine.session.protocol_doc > docs/protocol.md"
    assert PAGE.read_text() == page(), f"make it anew: {made}"


def test_every_event_and_command_is_there():
    for struct in (*get_args(AnyEvent), *get_args(AnyCommand)):
        assert f"### `{struct.__struct_config__.tag}`" in page()

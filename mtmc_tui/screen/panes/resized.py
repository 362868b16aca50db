"""The message of a pane whose lines are to be fitted again."""

from __future__ import annotations

from textual.message import Message


class PaneResized(Message):
    """A pane has another size now."""

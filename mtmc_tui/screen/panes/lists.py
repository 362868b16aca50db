"""Panes whose lines can be chosen: the plan tree and the regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from mtmc_tui.screen.panes.resized import PaneResized

Row = tuple[str, Content]


class ChoicePane(OptionList):
    """Lines with a key each; the highlight stays on its key when lines come and go."""

    ALLOW_SELECT: ClassVar[bool] = False

    def __init__(self, number: int, title: str) -> None:
        super().__init__(id=f"pane-{number}", classes="pane", markup=False)
        self.number = number
        self.border_title = f"{number} {title}"
        self._rows: list[Row] = []

    @property
    def line_width(self) -> int:
        """Cells that a line may take."""
        return max(10, self.scrollable_content_region.width)

    @property
    def highlighted_key(self) -> str:
        """Key of the highlighted line, "" where there is none."""
        return self.highlighted_option.id or "" if self.highlighted_option else ""

    def show(self, rows: Sequence[Row], highlight: str) -> None:
        """Draw `rows` and put the highlight on the line with that key."""
        self._replace(list(rows))
        keys = [key for key, _ in rows]
        if highlight in keys and self.highlighted != keys.index(highlight):
            with self.prevent(OptionList.OptionHighlighted):
                self.highlighted = keys.index(highlight)

    def _replace(self, rows: list[Row]) -> None:
        same_keys = [key for key, _ in rows] == [key for key, _ in self._rows]
        if same_keys:
            # Content compares by text alone; a state may change its colour only.
            for at, ((_, old), (_, new)) in enumerate(zip(self._rows, rows, strict=True)):
                if not new.is_same(old):
                    self.replace_option_prompt_at_index(at, new)
        else:
            kept = self.highlighted_key
            at = self.highlighted or 0
            keys = [key for key, _ in rows]
            with self.prevent(OptionList.OptionHighlighted):
                self.set_options(Option(text, id=key) for key, text in rows)
                if rows:
                    self.highlighted = keys.index(kept) if kept in keys else min(at, len(rows) - 1)
        self._rows = rows

    def on_resize(self) -> None:
        """Ask for lines that are made for the new width."""
        self.post_message(PaneResized())

    def move(self, where: str) -> None:
        """Move the highlight: "up", "down", "home" or "end"."""
        actions = {
            "up": self.action_cursor_up,
            "down": self.action_cursor_down,
            "home": self.action_first,
            "end": self.action_last,
        }
        actions[where]()

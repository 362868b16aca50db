"""Panes of lines that are read: code, proof, time."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual

from mtmc_tui.screen.panes.resized import PaneResized


class LinesPane(ScrollView, can_focus=True):
    """Styled lines, drawn one by one as they come into sight; long ones are wrapped."""

    def __init__(self, number: int, title: str) -> None:
        super().__init__(id=f"pane-{number}", classes="pane")
        self.number = number
        self.border_title = f"{number} {title}"
        self._source: tuple[Content, ...] = ()
        self._lines: list[Content] = []
        self._stops: tuple[int, ...] = ()
        self._strips: dict[int, tuple[Style, Strip]] = {}
        self._going_to_end = False

    @property
    def line_width(self) -> int:
        """Cells that a line may take without scrolling."""
        return max(10, self.scrollable_content_region.width)

    @property
    def drawn_lines(self) -> int:
        """Height of the text, after wrapping."""
        return len(self._lines)

    def show(
        self,
        lines: Sequence[Content],
        stops: Sequence[int] = (),
        top: bool = False,
        follow: bool = False,
    ) -> None:
        """Draw `lines`; `stops` are those that `jump` goes to; `top` scrolls back up.

        follow: a reader at the end stays there when lines are added.
        """
        at_end = follow and (self._going_to_end or self.scroll_offset.y >= self.max_scroll_y)
        self._going_to_end = self._going_to_end and follow
        same = len(lines) == len(self._source) and all(
            new is old or new.is_same(old) for new, old in zip(lines, self._source, strict=True)
        )
        if top:
            self.scroll_to(0, 0, animate=False)
        if same:
            return
        self._source, self._stops = tuple(lines), tuple(stops)
        self._lay_out()
        if at_end:
            self._going_to_end = True
            self.call_after_refresh(self._go_to_end)

    def jump(self, step: int) -> None:
        """Scroll to the next (1) or previous (-1) stop."""
        here = self.scroll_offset.y
        beyond = [at for at in self._stops if (at > here if step > 0 else at < here)]
        if beyond:
            self.scroll_to(y=beyond[0] if step > 0 else beyond[-1], animate=False)

    def move(self, where: str) -> None:
        """Scroll: "up", "down", "home" or "end"."""
        scrolls = {
            "up": self.scroll_up,
            "down": self.scroll_down,
            "home": self.scroll_home,
            "end": self.scroll_end,
        }
        scrolls[where](animate=False)

    def notify_style_update(self) -> None:
        """Colours changed: draw again."""
        super().notify_style_update()
        self._strips.clear()

    def on_resize(self) -> None:
        """Wrap to the new width, and ask for lines that are made for it."""
        self._lay_out()
        self.post_message(PaneResized())

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        at = self.scroll_offset.y + y
        style = self.visual_style
        drawn = self._strips.get(at)
        if drawn is None or drawn[0] != style:
            drawn = self._strips[at] = (style, self._strip(at, style))
        return drawn[1]

    def _go_to_end(self) -> None:
        """After a refresh the end is known; other lines may be shown by then, from their top."""
        if self._going_to_end:
            self._going_to_end = False
            self.scroll_end(animate=False, immediate=True)

    def _strip(self, at: int, style: Style) -> Strip:
        width = self.scrollable_content_region.width
        if at < len(self._lines):
            line = self._lines[at]
            strips = Visual.to_strips(self, line, width, 1, style, apply_selection=False, pad=True)
            if strips:
                return strips[0]
        return Strip.blank(width, self.rich_style)

    def _lay_out(self) -> None:
        width = self.line_width
        self._lines = [
            part
            for line in self._source
            for part in (line.wrap(width) if line.cell_length > width else (line,))
        ]
        self._strips.clear()
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

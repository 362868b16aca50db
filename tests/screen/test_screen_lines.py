"""Panes of lines: where a reader stands when other lines are shown."""

from textual.app import App, ComposeResult
from textual.content import Content

from mtmc_tui.screen.panes.text import LinesPane


class OnePane(App[None]):
    def compose(self) -> ComposeResult:
        yield LinesPane(1, "Code")


def numbered(word, count):
    return [Content(f"{word} {number}") for number in range(count)]


async def test_a_reader_at_the_end_follows_and_other_lines_begin_at_their_top():
    async with OnePane().run_test(size=(40, 12)) as pilot:
        pane = pilot.app.query_one(LinesPane)
        for count in (30, 60):
            pane.show(numbered("reply", count), follow=True)
            await pilot.pause()
            assert pane.scroll_offset.y == pane.max_scroll_y > 0
        pane.show(numbered("reply", 90), follow=True)
        pane.show(numbered("prompt", 70), top=True)  # before the next refresh
        await pilot.pause()
        assert pane.scroll_offset.y == 0

"""The main screen: panes that draw one snapshot, and what the keys do."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Input, OptionList, Static

from mtmc_engine.core.events import AnyEvent, CandidateReady, PromptReady, ReplyPart
from mtmc_tui.screen.actions import EngineActions
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.keys import KEYS, footer_keys, possible
from mtmc_tui.screen.panes.lists import ChoicePane
from mtmc_tui.screen.panes.resized import PaneResized
from mtmc_tui.screen.panes.text import LinesPane
from mtmc_tui.screen.render.activity import activity_text
from mtmc_tui.screen.render.code import code_text, code_title
from mtmc_tui.screen.render.plan import plan_line, plan_rows
from mtmc_tui.screen.render.proof import proof_lines
from mtmc_tui.screen.render.regions import costs_of, region_line, region_rows
from mtmc_tui.screen.render.status import footer_line, status_line, tab_strip
from mtmc_tui.screen.render.time import time_lines, time_title
from mtmc_tui.screen.view import (
    CODE,
    MORE,
    PANES,
    PLAN,
    PROOF,
    REGIONS,
    TALK_TABS,
    TIME,
    View,
    followed_row,
    shown_node,
    shown_option,
    shown_talks,
    tabs_of,
)

WIDE, VERY_WIDE = 100, 160
TALL = 34
SMALLEST = (60, 16)


class MainScreen(EngineActions):
    """Draws the workbench's snapshot as the user's view of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, key.action, key.help, show=False, id=key.id) for key in KEYS
    ]

    status = query_one("#status", Static)
    tabs = query_one("#tabs", Static)
    activity = query_one("#activity", Static)
    footer = query_one("#footer", Static)
    small = query_one("#small", Static)
    filter_field = query_one("#filter", Input)
    plan = query_one("#pane-1", ChoicePane)
    regions = query_one("#pane-2", ChoicePane)
    code = query_one("#pane-3", LinesPane)
    proof = query_one("#pane-4", LinesPane)
    time = query_one("#pane-5", LinesPane)

    def __init__(self, signs: Glyphs) -> None:
        super().__init__()
        self.view = View(glyphs=signs)
        self._code_drawn_from: tuple[object, ...] = ()
        self._possible: tuple[bool, ...] = ()
        self._activity_lines = -1
        self._titles: dict[int, Content | str] = {}
        self._arranged_for: tuple[int, ...] = ()

    def compose(self) -> ComposeResult:
        """Status and tabs above, five panes, question and keys below."""
        yield Static(id="status", markup=False)
        yield Static(id="tabs", markup=False)
        with Container(id="body"):
            with Container(id="left"):
                yield ChoicePane(PLAN, "Plan")
                yield ChoicePane(REGIONS, "Regions")
            with Container(id="rest"):
                yield LinesPane(CODE, "Code")
                with Container(id="facts"):
                    yield LinesPane(PROOF, "Proof")
                    yield LinesPane(TIME, "Time")
        field = Input(id="filter", placeholder="filter: enter keeps it, esc clears it")
        field.cursor_blink = False
        yield field
        yield Static(id="activity", markup=False)
        yield Static(id="footer", markup=False)
        yield Static(id="small", markup=False)

    def on_mount(self) -> None:
        """Arrange for the size at hand and tick once a second for what shows elapsed time."""
        for line in (self.tabs, self.footer):
            line.auto_links = False  # clicks work all the same, and the keys keep their colour
        self.set_class(self.view.glyphs.bar == "#", "-ascii")
        self._arrange()
        self.plan.focus()
        self.set_interval(1.0, self.draw_clock)

    def on_resize(self) -> None:
        """Arrange again; the lines around the panes take the new width."""
        self._arrange()
        self.draw()

    @on(PaneResized)
    def fit(self) -> None:
        """Make lines for the panes' new sizes."""
        self.draw()

    def change(self, **changes: object) -> None:
        """Look elsewhere: replace fields of the view and draw."""
        self.view = replace(self.view, **changes)  # type: ignore[arg-type]
        self._arrange()
        self.draw()

    def draw(self) -> None:
        """Draw the snapshot. Panes whose lines stay the same do no work."""
        if not (self.is_mounted and self.is_attached):
            return
        snapshot, view = self.snapshot, self.view
        signs = view.glyphs
        self._draw_lines_around()
        plan = [
            (row.key, plan_line(row, self.plan.line_width, signs))
            for row in plan_rows(snapshot, view)
        ]
        self.plan.show(plan, view.selected or followed_row(snapshot))
        regions = [
            (row.key, region_line(row, self.regions.line_width, signs))
            for row in region_rows(snapshot, view)
        ]
        self.regions.show(regions, "")
        self._draw_code()
        self.proof.show(proof_lines(snapshot, view, self.proof.line_width))
        self.time.show(time_lines(snapshot, view, self.time.line_width))
        self._draw_titles()
        able = tuple(key.when(snapshot, view) for key in KEYS)
        if able != self._possible:
            self._possible = able
            self.refresh_bindings()

    def draw_clock(self) -> None:
        """Draw only what shows elapsed time."""
        if not self.is_attached:
            return
        now = self.app.clock()
        width = self.size.width
        text = activity_text(self.snapshot, self.view, width, now)
        lines = text.plain.count("\n")
        self.activity.update(text, layout=lines != self._activity_lines)
        self._activity_lines = lines
        keys = footer_keys(self.snapshot, self.view)
        self.footer.update(footer_line(keys, self.snapshot, width, now), layout=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys whose action makes no sense now do nothing."""
        written = f"{action}({', '.join(map(repr, parameters))})" if parameters else action
        return possible(written, self.snapshot, self.view)

    def _draw_lines_around(self) -> None:
        snapshot, view = self.snapshot, self.view
        asks = snapshot.question is not None or snapshot.unsent is not None
        self.set_class(asks, "-asking")
        self.status.update(status_line(snapshot, view, self.size.width), layout=False)
        self.tabs.update(tab_strip(view), layout=False)
        self.draw_clock()

    def _draw_code(self) -> None:
        """Highlighting takes longer than all the rest: only for what is new."""
        snapshot, view, width = self.snapshot, self.view, self.code.line_width
        node = shown_node(snapshot, view)
        parent = snapshot.nodes.get(node.parent or "") if node else None
        shown = (node and node.id, view.tab, view.split, view.selected)
        drawn_from = (
            *shown,
            node and (node.source, node.ptx if view.tab == "ptx" else ""),
            parent and parent.source,
            shown_option(snapshot, view),
            snapshot.task,
            view.filter(CODE),
            width,
            shown_talks(snapshot, view) if view.tab in TALK_TABS else (),
        )
        if drawn_from == self._code_drawn_from:
            return
        text = code_text(snapshot, view, width)
        top = shown != self._code_drawn_from[: len(shown)]
        self.code.show(text.lines, text.stops, top=top, follow=view.tab == "reply")
        self._code_drawn_from = drawn_from

    def _draw_titles(self) -> None:
        snapshot, view = self.snapshot, self.view
        node = shown_node(snapshot, view)
        name = node.action.phrase if node and node.action else "original"
        rule = f" {view.glyphs.rule} "
        timed = time_title(snapshot, view)
        titles: dict[int, Content | str] = {
            PLAN: "1 Plan",
            REGIONS: f"2 Regions{rule}{view.glyphs.about} roofline model"
            if costs_of(snapshot, node)
            else "2 Regions",
            CODE: code_title(snapshot, view, self.code.size.width - 2),
            PROOF: f"4 Proof{rule}{name}" if node else "4 Proof",
            TIME: f"5 Time{rule}{timed}" if timed else "5 Time",
        }
        for pane, text in view.filters:
            titles[pane] = Content.assemble(titles[pane], f" /{text}")
        # A pane whose title is set is painted anew, even with the same one.
        for pane, title in titles.items():
            if title != self._titles.get(pane):
                self.query_one(f"#pane-{pane}").border_title = title
        self._titles = titles

    def _arrange(self) -> None:
        """One pane, two columns or three, by the size of the terminal and the zoom."""
        width, height = self.size
        self.view = replace(self.view, narrow=width < WIDE)
        one = self.view.one_pane
        arranged_for = (width, height, one, self.view.pane if one else 0)
        if arranged_for == self._arranged_for:
            return
        self._arranged_for = arranged_for
        tiny = width < SMALLEST[0] or height < SMALLEST[1]
        self.set_class(tiny, "-tiny")
        self.set_class(one, "-one")
        self.set_class(width >= VERY_WIDE and not one, "-very-wide")
        self.set_class(height < TALL, "-short")
        if tiny:
            self.small.update(f"mtmc needs {SMALLEST[0]}x{SMALLEST[1]}; this is {width}x{height}")
        for pane in self.query(".pane"):
            pane.set_class(pane.id == f"pane-{self.view.pane}", "-current")
        shown = {
            "#left": self.view.pane in (PLAN, REGIONS),
            "#rest": self.view.pane not in (PLAN, REGIONS),
            "#facts": self.view.pane in (PROOF, TIME),
        }
        for name, here in shown.items():
            self.query_one(name).display = here or not one

    # What the user looks at.

    @on(OptionList.OptionHighlighted, "#pane-1")
    def look_at(self, event: OptionList.OptionHighlighted) -> None:
        """Show the highlighted program; on the row of the run, follow the run again."""
        key = event.option_id or ""
        self.change(selected="" if key == followed_row(self.snapshot) else key)

    @on(OptionList.OptionSelected, "#pane-1")
    def open_row(self, event: OptionList.OptionSelected) -> None:
        """Unfold the options, or go to the code of a program."""
        if self.snapshot.unsent is not None:
            self.run_worker(self.action_send_prompt())
        elif event.option_id == MORE:
            self.change(every_option=not self.view.every_option)
        else:
            self.action_pane(CODE)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A pane that gets the focus, by key or mouse, is the one that keys act on."""
        widget = event.widget
        if isinstance(widget, ChoicePane | LinesPane) and widget.number != self.view.pane:
            self.change(pane=widget.number)

    def action_pane(self, number: int) -> None:
        """Focus a pane."""
        self.change(pane=number)
        self.query_one(f"#pane-{number}").focus()

    def action_next_pane(self, step: int) -> None:
        """Focus the next (1) or previous (-1) pane."""
        self.action_pane((self.view.pane - 1 + step) % len(PANES) + 1)

    def action_zoom(self) -> None:
        """Give the focused pane the whole body, or put the others back."""
        self.change(zoomed=not self.view.zoomed)

    def action_restore(self) -> None:
        """Undo the last of: filter, zoom, a highlight that was moved away from the run."""
        if self.view.filter(self.view.pane):
            self._filter("")
        elif self.view.zoomed:
            self.action_zoom()
        else:
            self.change(selected="")

    def action_tab(self, name: str) -> None:
        """Show a tab of the code pane."""
        self.change(tab=name)

    def action_next_tab(self, step: int) -> None:
        """Show the next (1) or previous (-1) tab."""
        tabs = tabs_of(self.snapshot)
        at = tabs.index(self.view.tab) if self.view.tab in tabs else 0
        self.change(tab=tabs[(at + step) % len(tabs)])

    def action_move(self, where: str) -> None:
        """Move in the focused pane: "up", "down", "home" or "end"."""
        pane = self.query_one(f"#pane-{self.view.pane}")
        assert isinstance(pane, ChoicePane | LinesPane)
        pane.move(where)

    def show_talk(self, event: AnyEvent) -> None:
        """Turn to the prompt that waits, to the reply that comes, and back to the diff.

        A reader of another tab is left there, but for a prompt that waits.
        """
        tab = self.view.tab
        if isinstance(event, PromptReady) and event.waits:
            self.change(tab="prompt", selected="")
            if self.is_current and not self.filter_field.has_focus:
                self.action_pane(CODE)
        elif isinstance(event, ReplyPart) and tab in ("diff", "prompt") and not self.view.selected:
            self.change(tab="reply")
        elif isinstance(event, CandidateReady) and tab in TALK_TABS:
            self.change(tab="diff")

    def action_hunk(self, step: int) -> None:
        """Go to the next (1) or previous (-1) hunk, or match."""
        self.code.jump(step)

    def action_diff_mode(self) -> None:
        """Unified or side by side."""
        self.change(split=not self.view.split)

    def action_filter(self) -> None:
        """Open the filter of the focused pane."""
        field = self.filter_field
        field.value = self.view.filter(self.view.pane)
        field.display = True
        field.focus()

    @on(Input.Changed, "#filter")
    def filter_typed(self, event: Input.Changed) -> None:
        """Narrow while typing."""
        if self.filter_field.display:
            self._filter(event.value)

    @on(Input.Submitted, "#filter")
    def filter_kept(self) -> None:
        """Keep the filter and go back to the pane."""
        self._close_filter()

    def on_key(self, event: events.Key) -> None:
        """Escape in the filter clears it."""
        if event.key == "escape" and self.filter_field.has_focus:
            event.stop()
            event.prevent_default()
            self._filter("")
            self._close_filter()

    def _filter(self, text: str) -> None:
        others = tuple(item for item in self.view.filters if item[0] != self.view.pane)
        self.change(filters=(*others, (self.view.pane, text)) if text else others)

    def _close_filter(self) -> None:
        self.filter_field.display = False
        self.query_one(f"#pane-{self.view.pane}").focus()
        if self.view.pane == CODE:
            self.code.jump(1)

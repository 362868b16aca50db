"""Small questions over the screen: yes or no, a line of text, one of a few, a page to read."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option


class Confirm(ModalScreen[bool]):
    """A question with yes or no. `detail` says what happens."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
    ]

    def __init__(self, question: str, detail: str) -> None:
        super().__init__(classes="dialog")
        self.question, self.detail = question, detail

    def compose(self) -> ComposeResult:
        """The question and its two keys."""
        with Vertical(classes="dialog-box"):
            yield Static(Content.styled(self.question, "bold"), markup=False)
            yield Static(Content(self.detail), markup=False)
            yield Static(
                Content.assemble(
                    (" y ", "bold reverse @click=screen.answer(True)"),
                    (" yes   ", "@click=screen.answer(True)"),
                    (" n ", "bold reverse @click=screen.answer(False)"),
                    (" no", "@click=screen.answer(False)"),
                )
            )

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)


class Ask(ModalScreen[tuple[str, str] | None]):
    """A line of text, and one of `choices` where there are some. `detail` says what it does.

    Closes with (choice, text), or None where the user thought better of it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel"),
        Binding("tab,down", "choose(1)", "next", priority=True),
        Binding("shift+tab,up", "choose(-1)", "previous", priority=True),
    ]

    def __init__(
        self,
        question: str,
        placeholder: str,
        choices: tuple[str, ...] = (),
        detail: str = "",
    ) -> None:
        super().__init__(classes="dialog")
        self.question, self.placeholder, self.choices = question, placeholder, choices
        self.detail = detail
        self.chosen = 0

    def compose(self) -> ComposeResult:
        """The question, the choices, the text field."""
        with Vertical(classes="dialog-box"):
            yield Static(Content.styled(self.question, "bold"), markup=False)
            if self.detail:
                yield Static(Content(self.detail), markup=False)
            if self.choices:
                yield Static(self._choices(), id="choices", markup=False)
            field = Input(placeholder=self.placeholder, id="answer")
            field.cursor_blink = False
            yield field
            keys = "enter sends, esc cancels" + (", tab chooses" if self.choices else "")
            yield Static(Content.styled(keys, "$quiet"))

    @on(Input.Submitted)
    def send(self, event: Input.Submitted) -> None:
        """Close with what was typed."""
        choice = self.choices[self.chosen] if self.choices else ""
        self.dismiss((choice, event.value.strip()))

    def action_choose(self, step: int) -> None:
        """Highlight the next or previous choice."""
        if self.choices:
            self.chosen = (self.chosen + step) % len(self.choices)
            self.query_one("#choices", Static).update(self._choices())

    def action_cancel(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    def _choices(self) -> Content:
        parts: list[str | tuple[str, str]] = []
        for at, choice in enumerate(self.choices):
            style = "bold reverse" if at == self.chosen else "$quiet"
            parts += [(f" {choice} ", style), "  "]
        return Content.assemble(*parts)


class Pick(ModalScreen[str | None]):
    """One of a few; closes with its key, or None. A key's first letter picks it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "cancel", "cancel")]

    def __init__(self, question: str, options: tuple[tuple[str, str], ...]) -> None:
        super().__init__(classes="dialog")
        self.question, self.options = question, options

    def compose(self) -> ComposeResult:
        """The question and the list."""
        with Vertical(classes="dialog-box"):
            yield Static(Content.styled(self.question, "bold"), markup=False)
            yield OptionList(
                *(Option(f"{key[0]}  {text}", id=key) for key, text in self.options), markup=False
            )

    @on(OptionList.OptionSelected)
    def picked(self, event: OptionList.OptionSelected) -> None:
        """Close with the line that was chosen."""
        self.dismiss(event.option.id)

    def on_key(self, event: object) -> None:
        """A first letter picks at once."""
        letter = getattr(event, "character", None)
        for key, _ in self.options:
            if letter == key[0]:
                self.dismiss(key)

    def action_cancel(self) -> None:
        """Close without a choice."""
        self.dismiss(None)


def page_width(width: int) -> int:
    """Cells that a line of a Page may take on a screen of `width`, as the style sheet has it."""
    return min(100, int(width * 0.96)) - 7


class Page(ModalScreen[None]):
    """Something to read: help, or a log. It covers the workbench, which is not painted below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,l", "close", "close"),
        Binding("j", "scroll(1)", "down"),
        Binding("k", "scroll(-1)", "up"),
    ]

    def __init__(self, title: str, text: Content) -> None:
        super().__init__(classes="dialog -page")
        self.page_title, self.text = title, text

    def compose(self) -> ComposeResult:
        """The text in a box that scrolls."""
        with VerticalScroll(classes="dialog-page", can_focus=True) as box:
            box.border_title = self.page_title
            box.border_subtitle = "esc closes"
            yield Static(self.text, markup=False)

    def on_mount(self) -> None:
        """Arrows scroll at once."""
        self.query_one(".dialog-page").focus()

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one(".dialog-page").scroll_relative(y=lines, animate=False)

    def action_close(self) -> None:
        """Back to the workbench."""
        self.dismiss()

"""The signs on the screen: one set for UTF-8 terminals, one in plain ASCII. Each is one cell."""

from __future__ import annotations

from dataclasses import dataclass

from mtmc_engine.core.measurement import TimeKind


@dataclass(frozen=True)
class Glyphs:
    """One sign for each thing the screen says with a sign.

    A state always shows its word and colour as well; `estimated_bar` and `about` keep an
    estimate from looking like a measurement, `replayed_bar` and `replayed` what is replayed.
    """

    original: str = "●"
    kept: str = "✓"
    failed: str = "✗"
    rejected: str = "–"
    open: str = "○"
    running: str = "›"
    proposed: str = "·"
    best: str = "★"
    ask: str = "?"
    warning: str = "!"
    about: str = "≈"
    replayed: str = "»"
    ellipsis: str = "…"
    separator: str = "│"
    dot: str = "·"
    branch: str = "├ "
    last: str = "└ "
    trunk: str = "│ "
    gap: str = "  "
    bar: str = "█"
    bar_parts: str = "▏▎▍▌▋▊▉"
    estimated_bar: str = "░"
    replayed_bar: str = "▒"
    rule: str = "─"
    micro: str = "µs"
    removed: str = "-"
    added: str = "+"

    def of(self, kind: TimeKind) -> str:
        """What stands before a figure of this kind; nothing before a measured one."""
        return {"measured": "", "replayed": self.replayed, "estimated": self.about}[kind]


UNICODE = Glyphs()

ASCII = Glyphs(
    original="*",
    kept="+",
    failed="x",
    rejected="-",
    open="o",
    running=">",
    proposed=".",
    best="^",
    about="~",
    replayed="&",
    ellipsis="~",
    separator="|",
    dot=".",
    branch="|-",
    last="`-",
    trunk="| ",
    bar="#",
    bar_parts="",
    estimated_bar=":",
    replayed_bar="=",
    rule="-",
    micro="us",
)


def glyphs(ascii_only: bool) -> Glyphs:
    """The set to draw with."""
    return ASCII if ascii_only else UNICODE

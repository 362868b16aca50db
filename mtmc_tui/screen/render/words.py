"""Numbers and names as the screen writes them."""

from __future__ import annotations

from textual.content import Content

from mtmc_engine.core.events import TaskOpened
from mtmc_engine.core.measurement import Ratio, TimeKind
from mtmc_tui.screen.glyphs import Glyphs

Part = tuple[str, str]

SHORT_DTYPES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
}


def dtype_text(dtype: str) -> str:
    """ "float32" as "fp32"; integers and booleans keep their name."""
    return SHORT_DTYPES.get(dtype, dtype)


def time_text(time_us: float, glyphs: Glyphs, kind: TimeKind = "measured") -> str:
    """Four significant digits with a unit; one that was not measured carries its sign."""
    mark = glyphs.of(kind)
    if time_us >= 1e6:
        return f"{mark}{_digits(time_us / 1e6)} s"
    if time_us >= 1e4:
        return f"{mark}{_digits(time_us / 1e3)} ms"
    return f"{mark}{_digits(time_us)} {glyphs.micro}"


def ratio_text(value: float, glyphs: Glyphs, kind: TimeKind = "measured") -> str:
    """ "1.31x", with a sign where it was not measured."""
    mark = glyphs.of(kind)
    return f"{mark}{value:.2f}x" if value < 100 else f"{mark}{value:.0f}x"


def interval_text(ratio: Ratio, glyphs: Glyphs, kind: TimeKind) -> str:
    """ "1.18x [1.16, 1.20]"; an estimate has no interval, it says "est." instead."""
    if kind == "estimated":
        return f"{ratio_text(ratio.value, glyphs, kind)} est."
    return f"{ratio_text(ratio.value, glyphs, kind)} [{ratio.low:.2f}, {ratio.high:.2f}]"


def task_kind(task: TaskOpened) -> TimeKind | None:
    """What a task's times are; None where there are none."""
    if task.measured:
        return "measured"
    return None if task.instead == "none" else task.instead


def percent_text(share: float) -> str:
    """A share from 0 to 1 as "62 %"; what is there but under one per cent is "<1 %"."""
    if 0 < share < 0.005:
        return "<1 %"
    return f"{share * 100:.0f} %"


def duration_text(seconds: float) -> str:
    """ "0:42", "12:05", "1:00:03"."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def count_text(count: int) -> str:
    """ "812", "12.3k", "50k", "1.2M"."""
    for unit in ("", "k", "M"):
        if abs(count) < 1000 or unit == "M":
            break
        count = count / 1000  # type: ignore[assignment]
    digits = f"{count:.1f}" if unit and count < 100 else f"{count:.0f}"
    return digits.removesuffix(".0") + unit


def bytes_text(count: float) -> str:
    """ "16 KB", "1.4 GB": powers of 1024, two digits where under ten."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.1f} {unit}" if count < 10 and unit != "B" else f"{count:.0f} {unit}"
        count /= 1024
    raise AssertionError


def clip(text: str, width: int, glyphs: Glyphs) -> str:
    """`text` in at most `width` cells, the cut marked. Text must be of one-cell characters."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1)] + glyphs.ellipsis if width > 0 else ""


def packed(parts: list[Part], between: str, width: int) -> list[Content]:
    """Text with its style, as many a line as fit; none is broken."""
    lines: list[Content] = []
    for text, style in parts:
        part = Content.styled(text, style)
        if lines and lines[-1].cell_length + len(between) + part.cell_length <= width:
            lines[-1] = Content.assemble(lines[-1], (between, "$faint"), part)
        else:
            lines.append(part)
    return lines


def fitted(parts: list[Part], width: int) -> Content:
    """The first parts that fit in `width` cells: what is last goes first. One is always there."""
    line = Content("")
    for text, style in parts:
        if line.cell_length + len(text.rstrip()) > width and line.plain.strip():
            break
        line += Content.styled(text, style)
    return line


def spread(left: Content, right: Content, width: int) -> Content:
    """`left` and `right` at the two ends of a line; `left` gives way."""
    room = max(0, width - right.cell_length - 1)
    left = left.truncate(room, ellipsis=False)
    gap = max(1, width - left.cell_length - right.cell_length)
    return Content.assemble(left, " " * gap, right)


def _digits(value: float) -> str:
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"

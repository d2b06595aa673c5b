"""Building blocks of notebook views: styled frame, tables, lists of facts, notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dse.errors import DseError
from dse.report.html.render import call_macro, trusted
from dse.system.terminal_text import visible_html

LONGEST = 120
"""Maximum number of characters shown; longer texts are truncated."""

_PARTS = "notebook/parts.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """Column of an HTML table: its title and cells; numbers are right-aligned."""

    heading: str
    cells: Sequence[str]
    note: str = ""
    number: bool = False


def framed(title: str, *parts: str, beside: str = "") -> str:
    """Return the complete HTML view of an object: style, title and content."""
    return call_macro(_PARTS, "framed", title, parts, beside, _style(), LONGEST)


def or_message(title: str, write: Callable[[], str]) -> str:
    """Return the HTML that ``write`` makes or, if it raises a DseError, the error's message."""
    try:
        written = write()
    except DseError as error:
        written = framed(title, call_macro(_PARTS, "message", str(error)))
    return visible_html(written)


def table(columns: Sequence[TableColumn]) -> str:
    """Return columns of equal length as an HTML table that scrolls if it is too wide."""
    rows = list(zip(*(column.cells for column in columns), strict=True))
    return call_macro(_PARTS, "table", columns, rows, LONGEST) if rows else ""


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return (name, value) pairs as an HTML description list; omit pairs with an empty value."""
    present = [pair for pair in pairs if pair[1]]
    return call_macro(_PARTS, "facts", present, LONGEST) if present else ""


def listed(items: Sequence[str], most: int = 12) -> str:
    """Return the first ``most`` strings as an HTML list, with the number of further strings."""
    more = len(items) - most
    return call_macro(_PARTS, "listed", items[:most], more, LONGEST) if items else ""


def note(text: str) -> str:
    """Return a remark as an HTML paragraph; empty for an empty text."""
    return call_macro(_PARTS, "note", text) if text else ""


def paragraphs(sentences: Sequence[str]) -> str:
    """Return the sentences as HTML, each in a paragraph of its own."""
    return call_macro(_PARTS, "paragraphs", sentences)


def side_by_side(*parts: str) -> str:
    """Return HTML fragments next to each other if there is room, else stacked."""
    return call_macro(_PARTS, "side_by_side", parts)


def bar(share: float | None, words: str) -> str:
    """Return progress as an HTML bar with a text; only as text if ``share`` (0 to 1) is unknown."""
    done = None if share is None else min(max(share, 0.0), 1.0)
    return call_macro(_PARTS, "bar", done, words, LONGEST)


def steady(bars: Sequence[str], sentences: Sequence[str]) -> str:
    """Return progress bars and sentences of a running study as HTML of constant height."""
    return call_macro(_PARTS, "steady", bars, sentences, LONGEST)


def figure(drawn: str, marks: Sequence[tuple[str, str, str]], remarks: Sequence[str]) -> str:
    """Return a plot with its legend, hidden until the style sheet makes it visible.

    Args:
        drawn: the plot as SVG.
        marks: the kind, the sign and the meaning of each mark of the legend.
        remarks: texts below the plot.
    """
    return call_macro(_PARTS, "figure", drawn, marks, remarks)


@cache
def _style() -> str:
    return trusted(Path(__file__).with_name("look.css").read_text(encoding="utf-8"))

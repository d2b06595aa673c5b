"""Building blocks of notebook views: styled frame, tables, lists of facts, notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from dse.errors import DseError
from dse.system.terminal_text import visible_html

LONGEST = 120
"""Maximum number of characters shown; longer texts are truncated."""

_CLASSES = "dse-shown tex2jax_ignore mathjax_ignore"
"""CSS classes of a frame; the last two keep MathJax from rendering text between dollar signs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """Column of a table; numbers are right-aligned."""

    heading: str
    cells: Sequence[str]
    note: str = ""
    number: bool = False


def framed(title: str, *parts: str, beside: str = "") -> str:
    """Return the complete HTML view of an object: style, title and parts."""
    small = f" <small>{escaped(beside)}</small>" if beside else ""
    head = f'<div class="dse-head">{escaped(title)}{small}</div>'
    return f'<div class="{_CLASSES}"><style>{_style()}</style>{head}{"".join(parts)}</div>'


def or_message(title: str, write: Callable[[], str]) -> str:
    """Return the written HTML, or the message of the user error that prevents it."""
    try:
        written = write()
    except DseError as error:
        written = framed(title, f'<pre style="white-space:pre-wrap">{escape(str(error))}</pre>')
    return visible_html(written)


def escaped(text: str, most: int = LONGEST) -> str:
    """Return a text truncated to ``most`` characters and escaped for HTML."""
    return escape(shortened(text, most))


def shortened(text: str, most: int = LONGEST) -> str:
    """Return a text truncated to ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def table(columns: Sequence[TableColumn]) -> str:
    """Return columns of equal length as an HTML table that scrolls if it is too wide."""
    if not columns or not len(columns[0].cells):
        return ""
    sides = [' class="dse-number"' if column.number else "" for column in columns]
    heads = "".join(
        f'<th scope="col"{side}>{escaped(column.heading)}{_note(column.note)}</th>'
        for column, side in zip(columns, sides, strict=True)
    )
    rows = "".join(
        f"<tr>{_cells(row, sides)}</tr>"
        for row in zip(*(column.cells for column in columns), strict=True)
    )
    return (
        '<div class="dse-scroll" tabindex="0"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return name-value pairs as an HTML description list; empty values are left out."""
    told = [f"<dt>{escaped(name)}</dt><dd>{escaped(one, 600)}</dd>" for name, one in pairs if one]
    return f"<dl>{''.join(told)}</dl>" if told else ""


def listed(items: Sequence[str], most: int = 12) -> str:
    """Return texts as an HTML list of at most ``most`` items."""
    shown = "".join(f"<li><code>{escaped(item)}</code></li>" for item in items[:most])
    more = f"<li>and {len(items) - most:,} more</li>" if len(items) > most else ""
    return f"<ul>{shown}{more}</ul>" if items else ""


def note(text: str) -> str:
    """Return a remark as an HTML paragraph; empty for an empty text."""
    return f'<p class="dse-soft">{escaped(text, 600)}</p>' if text else ""


def paragraphs(sentences: Sequence[str]) -> str:
    """Return each sentence as an HTML paragraph."""
    return "".join(f"<p>{escaped(one, 600)}</p>" for one in sentences)


def side_by_side(*parts: str) -> str:
    """Return HTML parts next to each other if there is room, else stacked."""
    return f'<div class="dse-side">{"".join(f"<div>{part}</div>" for part in parts if part)}</div>'


def bar(share: float | None, words: str) -> str:
    """Return progress as a bar with text; only as text if ``share`` (0 to 1) is unknown."""
    if share is None:
        return f"<p>{escaped(words)}</p>"
    done = min(max(share, 0.0), 1.0)
    drawn = f'<progress max="1" value="{done:.4f}" aria-hidden="true"></progress>'
    return f"<p>{drawn} {escaped(words)}</p>"


def _cells(row: Iterable[str], sides: Iterable[str]) -> str:
    return "".join(f"<td{s}>{escaped(cell)}</td>" for cell, s in zip(row, sides, strict=True))


def _note(text: str) -> str:
    return f" <small>{escaped(text)}</small>" if text else ""


@cache
def _style() -> str:
    return Path(__file__).with_name("look.css").read_text(encoding="utf-8")

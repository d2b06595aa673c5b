"""Errors in a formula, with their position in its text."""

from __future__ import annotations

from dse.errors import SpecError

_SHOWN = 100
"""So many letters of a long text are shown."""

_INDENT = " " * 8  # where a hint's text starts


def build_position_error(problem: str, text: str, column: int | None, hint: str = "") -> SpecError:
    """Build the error with its hint, then the text with a mark under ``column``."""
    shown = []
    if hint:
        shown.append(hint)
    if column is not None and text.isprintable():
        shown += _window(text, column)
    return SpecError(
        f"{problem} in expression {shorten_text(text)!r}", hint=f"\n{_INDENT}".join(shown)
    )


def shorten_text(text: str) -> str:
    """Return the text, or the start of a long one."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _window(text: str, column: int) -> tuple[str, str]:
    """The part of the text around a column, and the mark under it."""
    start = 0 if len(text) <= _SHOWN else max(column - _SHOWN // 2, 0)
    return text[start : start + _SHOWN], " " * (column - start) + "^"

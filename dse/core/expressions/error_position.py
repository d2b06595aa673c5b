"""Error messages that mark a position in the text of a formula."""

from __future__ import annotations

from dse.errors import SpecError

_SHOWN = 100
"""Most characters of a formula that an error message shows."""

_INDENT = " " * 8  # where a hint's text starts


def build_position_error(problem: str, text: str, column: int | None, hint: str = "") -> SpecError:
    """Build an error whose hint is followed by the formula with a mark under ``column``.

    Args:
        problem: what is wrong.
        text: the formula.
        column: the position of the mistake in ``text``, from 0; ``None`` if unknown.
        hint: how to fix it.
    """
    shown = []
    if hint:
        shown.append(hint)
    if column is not None and text.isprintable():
        shown += _window(text, column)
    return SpecError(
        f"{problem} in expression {shorten_text(text)!r}", hint=f"\n{_INDENT}".join(shown)
    )


def shorten_text(text: str) -> str:
    """Return the text, truncated after 100 characters."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _window(text: str, column: int) -> tuple[str, str]:
    """Return an excerpt of the text around a column, and a line with ``^`` below that column."""
    start = 0 if len(text) <= _SHOWN else max(column - _SHOWN // 2, 0)
    return text[start : start + _SHOWN], " " * (column - start) + "^"

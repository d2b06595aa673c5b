"""Scatter plot drawn with text: Braille characters of two by four dots each, or ASCII."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from dse.core.values import Floats, Mask
from dse.report.axes import PlotAxis

FAINT = "dim"
BRIGHT = "bold #d55e00"
"""Vermilion as in the reports; bold keeps it distinct from faint text without colours."""

_BRAILLE = 0x2800

DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bit of a Braille character that raises the dot in each row and column.

Source:
    The Unicode Standard, chapter 21.1, Braille Patterns.
"""

_HALVES = (0x1B, 0xE4)
"""Bits of the upper and the lower half of a character; a highlighted point fills one half."""

_WHOLE = np.array([[1]])

Bits = NDArray[np.int64]


class _Ink(NamedTuple):
    """Characters with which a plot is drawn: its axes, and the markers of both kinds of points."""

    side: str
    corner: str
    foot: str
    bright: str
    faint: str


_UNICODE = _Ink("│", "└", "─", "⠛", "⠒")
_ASCII = _Ink("|", "+", "-", "o", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Scatter plot in text characters: highlighted points drawn over other points.

    The points ``bright`` and ``faint`` are arrays of shape (n, 2) in the axes' units. The plot
    takes the available width of the terminal and ``rows`` lines of text.
    """

    x: PlotAxis
    y: PlotAxis
    faint: Floats  # (n, 2), in the axes' units
    bright: Floats  # (k, 2), in the axes' units
    rows: int
    line: bool = False
    """Whether the bright points form a line; they are then as small as the others."""

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        ink = _ASCII if options.ascii_only else _UNICODE
        low, high = self.y.ends
        gutter = max(len(low), len(high))
        columns = max(options.max_width - gutter - 2, 1)
        yield _truncate_line(_title(self.y), options.max_width)
        for place, line in enumerate(self._lines(columns, ink)):
            end = high if place == 0 else low if place == self.rows - 1 else ""
            yield Text.assemble((f"{end:>{gutter}} {ink.side}", FAINT), line)
        yield Text(f"{'':>{gutter}} {ink.corner}{ink.foot * columns}", style=FAINT)
        yield Text.assemble(" " * (gutter + 2), _footing(self.x, columns))

    @property
    def hidden(self) -> int:
        """Number of points outside of the plotted ranges."""
        return sum(int((~_inside(self._shares(p))).sum()) for p in (self.faint, self.bright))

    def _lines(self, columns: int, ink: _Ink) -> Sequence[Text]:
        shape, ascii_only = (self.rows, columns), ink is _ASCII
        faint, bright = (
            cells(self._shares(points), shape, _WHOLE if ascii_only else DOTS)
            for points in (self.faint, self.bright)
        )
        if not (self.line or ascii_only):
            bright = _large(bright)
        words = np.where(bright > 0, bright, faint)
        return [
            _line(codes.tolist(), marks.tolist(), ascii_only=ascii_only)
            for codes, marks in zip(words, bright > 0, strict=True)
        ]

    def _shares(self, points: Floats) -> Floats:
        """Return the points' positions in the plot, 0 to 1 along each axis, shape (n, 2)."""
        x, y = self.x.shares(points[:, 0]), self.y.shares(points[:, 1])
        return np.column_stack([x, y]).round(9)  # ends from logarithms may miss their own points


def cells(
    shares: Floats,  # (n, 2): position to the right and up, 0 to 1; points outside are dropped
    shape: tuple[int, int],
    bits: Bits = DOTS,  # (rows, columns) of one character
) -> Bits:
    """Rasterize points to text characters, each of which is a small matrix of dots (Braille).

    The result has shape (rows, columns), an integer per character: the sum of the ``bits`` of its
    dots that contain a point.
    """
    rows, columns = shape[0] * bits.shape[0], shape[1] * bits.shape[1]
    kept = shares[_inside(shares)]
    across = np.rint(kept[:, 0] * (columns - 1)).astype(np.int64)
    down = np.rint((1 - kept[:, 1]) * (rows - 1)).astype(np.int64)
    raised = np.zeros((rows, columns), dtype=np.int64)
    raised[down, across] = 1
    parts = raised.reshape(shape[0], bits.shape[0], shape[1], bits.shape[1])
    return np.asarray((parts * bits[None, :, None, :]).sum(axis=(1, 3)))


def _large(codes: Bits) -> Bits:
    """Fill each half of a character that has any dot set, so that points look larger."""
    upper, lower = (np.where(codes & half, half, 0) for half in _HALVES)
    return np.asarray(upper + lower)


def legend(*, bright: str, faint: str, ascii_only: bool) -> Text:
    """Return the legend that names the two kinds of points."""
    ink = _ASCII if ascii_only else _UNICODE
    return Text.assemble((f"{ink.bright} {bright}", BRIGHT), (f"  {ink.faint} {faint}", FAINT))


def _inside(shares: Floats) -> Mask:
    return np.asarray(((shares >= 0) & (shares <= 1)).all(axis=1))  # NaN and infinity are not


def _line(codes: list[int], marks: list[bool], *, ascii_only: bool) -> Text:
    """Return one line of the plot as text, coloured where a character has a highlighted point."""
    line = Text(no_wrap=True)
    for mark, run in groupby(zip(codes, marks, strict=True), key=itemgetter(1)):
        if ascii_only:
            words = "".join(_plain(code, mark=mark) for code, _ in run)
        else:
            words = "".join(chr(_BRAILLE + code) if code else " " for code, _ in run)
        line.append(words, BRIGHT if mark else FAINT)
    return line


def _plain(code: int, *, mark: bool) -> str:
    return (_ASCII.bright if mark else _ASCII.faint) if code else " "


def _footing(axis: PlotAxis, columns: int) -> Text:
    """Return the text line below the horizontal axis: its end values and, if it fits, a title."""
    low, high = axis.ends
    room = max(columns - len(low) - len(high) - 2, 0)
    title = _title(axis)
    title = title if len(title) <= room else _truncate_line(axis.name, room).plain
    return Text.assemble((low, FAINT), f" {title:^{room}} ", (high, FAINT))


def _title(axis: PlotAxis) -> str:
    return f"{axis.name} ({axis.notes})" if axis.notes else axis.name


def _truncate_line(words: str, width: int) -> Text:
    text = Text(words, no_wrap=True)
    text.truncate(width, overflow="ellipsis")
    return text

"""Scatter plot as SVG: a coloured front over dimmed trials, with axes, units and tooltips."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np

from dse.api.notebook.parts import escaped, shortened
from dse.api.notebook.points import AxisRange, Points
from dse.api.notebook.ticks import tick_text, ticks
from dse.core.values import Floats

WIDTH, HEIGHT = 400, 250
"""Nominal size of the plot in pixels; it shrinks with its container."""

_TOP, _RIGHT, _BOTTOM, _LEFT = 22, 10, 36, 14
_LETTER = 6.2
_TITLE = 46
_DOT, _CROSS = 2, 4
"""Cell sizes in pixels for dots and crosses: points that share a cell are drawn once."""

_FAINT = 'fill="none" stroke="currentColor" stroke-opacity="{}" stroke-linecap="round"'
_PLAIN = 'font-size="11" font-family="sans-serif" fill="currentColor"'
"""Inline style, for notebook viewers that remove style sheets."""

_FRONT, _KNEE = "var(--dse-front, #0072b2)", "var(--dse-knee, #d55e00)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Plot area between the axes, in pixels."""

    points: Points
    left: float

    def at(
        self,
        points: Floats,  # (n, 2), in the axes' units
    ) -> Floats:
        """Return the points in pixels, (k, 2) with k <= n; points beyond the axes are left out."""
        x, y = self.points.x.shares(points[:, 0]), self.points.y.shares(points[:, 1])
        inside = (x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)  # NaN is not
        return np.column_stack([self.across(x[inside]), self.up(y[inside])])

    def across(self, shares: Floats) -> Floats:
        return self.left + shares * (WIDTH - _RIGHT - self.left)

    def up(self, shares: Floats) -> Floats:
        return HEIGHT - _BOTTOM - shares * (HEIGHT - _BOTTOM - _TOP)


def scatter(points: Points, words: str) -> str:
    """Return the plot as SVG, with ``words`` as its description for screen readers."""
    rises = _marks(points.y)
    left = _LEFT + _LETTER * max((len(tick_text(mark)) for mark in rises), default=0)
    place = _Place(points=points, left=left)
    parts = [
        *_axes(place, rises),
        _crosses(place.at(points.outside)),
        _dots(place.at(points.others)),
        _staircase(place.at(points.line)),
        *_best(place),
    ]
    return _drawing(words, "".join(parts))


def blank(words: str) -> str:
    """Return an SVG of the same size that shows only a text."""
    return _drawing(words, _text(WIDTH / 2, HEIGHT / 2, words, "middle"))


def hidden(points: Points) -> int:
    """Return the number of points beyond the axes."""
    place = _Place(points=points, left=0.0)
    every = (points.best, points.others, points.outside)
    return sum(len(one) - len(place.at(one)) for one in every)


def _marks(extent: AxisRange) -> list[float]:
    return ticks(extent.low, extent.high, log=extent.axis.log)


def _axes(place: _Place, rises: list[float]) -> Iterator[str]:
    """Yield the SVG of grid lines, tick labels and axis titles."""
    x, y = place.points.x, place.points.y
    foot, end = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    for mark, at in zip(rises, place.up(y.shares(np.array(rises))).tolist(), strict=True):
        yield _grid(f"M{place.left:.0f} {at:.1f}H{end}")
        yield _text(place.left - 5, at + 4, tick_text(mark), "end")
    crossings = _marks(x)
    ats = place.across(x.shares(np.array(crossings))).tolist()
    for mark, at in zip(crossings, ats, strict=True):
        yield _grid(f"M{at:.1f} {_TOP}V{foot}")
        yield _text(min(at, end - 4), foot + 14, tick_text(mark), "middle")
    yield _text(2, 12, _title(y), "start")
    yield _text(end, HEIGHT - 4, _title(x), "end")


def _title(extent: AxisRange) -> str:
    words = [word for word in (extent.goal, "log scale" if extent.axis.log else "") if word]
    name = shortened(extent.axis.name, _TITLE - len(extent.axis.unit))
    unit = f" [{extent.axis.unit}]" if extent.axis.unit else ""
    return f"{name}{unit}" + (f", {', '.join(words)}" if words else "")


def _grid(path: str) -> str:
    return f'<path d="{path}" stroke="currentColor" stroke-opacity=".18" fill="none"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _dots(
    points: Floats,  # (n, 2), in pixels
) -> str:
    path = "".join(f"M{x} {y}h0" for x, y in _distinct(points, _DOT))
    return f'<path d="{path}" {_FAINT.format(".35")} stroke-width="3.4"/>' if path else ""


def _crosses(points: Floats) -> str:
    path = "".join(f"M{x - 2} {y - 2}l4 4m0-4l-4 4" for x, y in _distinct(points, _CROSS))
    return f'<path d="{path}" {_FAINT.format(".45")}/>' if path else ""


def _distinct(points: Floats, cell: int) -> list[list[int]]:
    """Return the occupied grid cells in pixels, (k, 2): bounded, even for a million points."""
    taken = np.zeros((WIDTH // cell + 1, HEIGHT // cell + 1), dtype=bool)
    across, down = np.rint(points / cell).astype(np.int64).T
    taken[across, down] = True
    found: list[list[int]] = (np.argwhere(taken) * cell).tolist()
    return found


def _staircase(points: Floats) -> str:
    if len(points) < 2:
        return ""
    (x, y), *rest = points.tolist()
    steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y in rest)
    path = f"M{x:.1f} {y:.1f}{steps}"
    return f'<path d="{path}" fill="none" stroke="{_FRONT}" stroke-width="1.5"/>'


def _best(place: _Place) -> Iterator[str]:
    """Yield the SVG of the best points, with tooltips if they have labels, and of the knee."""
    points = place.points
    at = place.at(points.best)
    if len(at) == len(points.labels):
        for (x, y), words in zip(at.tolist(), points.labels, strict=True):
            title = f"<title>{escape(words)}</title>"
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_FRONT}">{title}</circle>'
    else:
        path = "".join(f"M{x} {y}h0" for x, y in _distinct(at, _DOT))
        yield f'<path d="{path}" stroke="{_FRONT}" stroke-linecap="round" stroke-width="6"/>'
    if points.knee is not None:
        for x, y in place.at(points.best[[points.knee]]).tolist():
            ring = f'fill="none" stroke="{_KNEE}" stroke-width="2.2"'
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7.5" {ring}/>'


def _drawing(words: str, content: str) -> str:
    return (
        f'<svg role="img" aria-label="{escaped(words, 400)}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" {_PLAIN} xmlns="http://www.w3.org/2000/svg">'
        f"{content}</svg>"
    )

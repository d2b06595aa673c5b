"""Scatter plot as SVG: a coloured front over dimmed trials, with axes, units and tooltips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.api.notebook.points import Points
from dse.core.values import Floats
from dse.report.axes import PlotAxis, tick_text
from dse.report.html.render import render

WIDTH, HEIGHT = 400, 250
"""Nominal size of the plot in pixels; it shrinks with its container."""

_TOP, _RIGHT, _BOTTOM, _LEFT = 22, 10, 36, 14
_LETTER = 6.2
_DOT, _CROSS = 2, 4
"""Cell sizes in pixels for dots and crosses: points that share a cell are drawn once."""

_Text = tuple[float, float, str, str]
"""Text of a plot: its place in pixels, its words, and which of its ends stands there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shapes:
    """SVG elements of a plot: point paths, labelled best points, and the centres of rings."""

    grid: Sequence[str] = ()
    crosses: str = ""
    dots: str = ""
    line: str = ""
    best: str = ""
    labelled: Sequence[tuple[list[float], str]] = ()
    rings: Sequence[list[float]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Plot area between the axes, which converts points from the axes' units to pixels."""

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
    """Return a scatter plot as SVG, with ``words`` as its description for screen readers."""
    rises = points.y.ticks
    left = _LEFT + _LETTER * max((len(tick_text(mark)) for mark in rises), default=0)
    place = _Place(points=points, left=left)
    grid, texts = _axes(place, rises)
    best = place.at(points.best)
    is_labelled = len(best) == len(points.labels)
    knee = points.best[:0] if points.knee is None else points.best[[points.knee]]
    shapes = _Shapes(
        grid=grid,
        crosses=_crosses(place.at(points.outside)),
        dots=_dots(place.at(points.others)),
        line=_step_path(place.at(points.line)),
        best="" if is_labelled else _dots(best),
        labelled=list(zip(best.tolist(), points.labels, strict=True)) if is_labelled else [],
        rings=place.at(knee).tolist(),
    )
    return _draw(words, texts, shapes)


def blank(words: str) -> str:
    """Return an SVG of a plot's size that shows only a text."""
    return _draw(words, [(WIDTH / 2, HEIGHT / 2, words, "middle")], _Shapes())


def _draw(words: str, texts: Sequence[_Text], shapes: _Shapes) -> str:
    return render(
        "notebook/scatter.html", words=words, texts=texts, shapes=shapes, width=WIDTH, height=HEIGHT
    )


def hidden(points: Points) -> int:
    """Return the number of points that are not drawn because they lie outside the axis ranges."""
    place = _Place(points=points, left=0.0)
    every = (points.best, points.others, points.outside)
    return sum(len(one) - len(place.at(one)) for one in every)


def _axes(place: _Place, rises: list[float]) -> tuple[list[str], list[_Text]]:
    """Return the paths of the grid lines, and the tick labels and axis titles."""
    x, y = place.points.x, place.points.y
    foot, end = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    crossings = x.ticks
    ups = place.up(y.shares(np.array(rises))).tolist()
    ats = place.across(x.shares(np.array(crossings))).tolist()
    grid = [f"M{place.left:.0f} {at:.1f}H{end}" for at in ups]
    grid += [f"M{at:.1f} {_TOP}V{foot}" for at in ats]
    texts = [
        *((place.left - 5, at + 4, tick_text(m), "end") for m, at in zip(rises, ups, strict=True)),
        *(
            (min(at, end - 4), foot + 14, tick_text(mark), "middle")
            for mark, at in zip(crossings, ats, strict=True)
        ),
        (2, 12, _title(y), "start"),
        (end, HEIGHT - 4, _title(x), "end"),
    ]
    return grid, texts


def _title(axis: PlotAxis) -> str:
    return f"{axis.title}, {axis.notes}" if axis.notes else axis.title


def _dots(
    points: Floats,  # (n, 2), in pixels
) -> str:
    return "".join(f"M{x} {y}h0" for x, y in _distinct(points, _DOT))


def _crosses(points: Floats) -> str:
    return "".join(f"M{x - 2} {y - 2}l4 4m0-4l-4 4" for x, y in _distinct(points, _CROSS))


def _distinct(points: Floats, cell: int) -> list[list[int]]:
    """Return the pixel coordinates of each grid cell that holds at least one point, (k, 2).

    Drawing one mark per cell bounds the size of the plot even for a million points.
    """
    taken = np.zeros((WIDTH // cell + 1, HEIGHT // cell + 1), dtype=bool)
    across, down = np.rint(points / cell).astype(np.int64).T
    taken[across, down] = True
    found: list[list[int]] = (np.argwhere(taken) * cell).tolist()
    return found


def _step_path(points: Floats) -> str:
    if len(points) < 2:
        return ""
    (x, y), *rest = points.tolist()
    steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y in rest)
    return f"M{x:.1f} {y:.1f}{steps}"

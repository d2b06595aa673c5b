"""Scatter plot of a study with its legend and remarks on points that are not drawn."""

from __future__ import annotations

from collections.abc import Sequence

from dse.api.notebook.parts import figure
from dse.api.notebook.points import Points
from dse.api.notebook.svg_scatter import hidden, scatter
from dse.core.objective import Objective


def picture(points: Points | None, objectives: Sequence[Objective], name: str) -> str:
    """Return the scatter plot of a study with its legend as HTML; empty if there are no points."""
    if points is None:
        return ""
    alone = len(objectives) == 1
    others = len(points.others) > (0 if alone else len(points.best))
    marks = [
        ("front", "●", "the best so far" if alone else "front", len(points.best) > 0),
        ("knee", "○", "knee", points.knee is not None),
        ("others", "•", "other trials", others),
        ("outside", "\u00d7", "outside limits", len(points.outside) > 0),
    ]
    caption = f"{name}: {len(points.best)} designs on the front; {_along(points)}"
    legend = [(kind, sign, words) for kind, sign, words, is_there in marks if is_there]
    return figure(scatter(points, caption), legend, _remarks(points, objectives))


def _remarks(points: Points, objectives: Sequence[Objective]) -> list[str]:
    """Return remarks on objectives that the plot omits, and on points outside its axis ranges."""
    beyond = hidden(points)
    words = [
        f"the first two of {len(objectives)} objectives" if len(objectives) > 2 else "",
        f"{beyond:,} beyond the axes" if beyond else "",
    ]
    return [word for word in words if word]


def _along(points: Points) -> str:
    """Return the name and the range of both axes as text."""
    return ", ".join(
        f"{one.title} from {one.low:.4g} to {one.high:.4g}" for one in (points.x, points.y)
    )

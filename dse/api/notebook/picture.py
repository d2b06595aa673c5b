"""Scatter plot of a study with its legend and remarks on points that are not drawn."""

from __future__ import annotations

from collections.abc import Sequence

from dse.api.notebook.points import Points
from dse.api.notebook.scatter import hidden, scatter
from dse.core.objective import Objective


def picture(points: Points | None, objectives: Sequence[Objective], name: str) -> str:
    """Return the plot of a study as HTML; empty if there are no points."""
    if points is None:
        return ""
    alone = len(objectives) == 1
    others = len(points.others) > (0 if alone else len(points.best))
    legend = [
        _mark("front", "●", "the best so far" if alone else "front", there=len(points.best) > 0),
        _mark("knee", "○", "knee", there=points.knee is not None),
        _mark("others", "•", "other trials", there=others),
        _mark("outside", "\u00d7", "outside limits", there=len(points.outside) > 0),
        *_remarks(points, objectives),
    ]
    told = f"{name}: {len(points.best)} designs on the front; {_along(points)}"
    return figure(scatter(points, told), "".join(legend))


def figure(drawn: str, legend: str) -> str:
    """Return a plot with its legend, hidden until the style sheet makes it visible.

    In an untrusted notebook, or on GitHub, style sheets and SVG are removed, and only the plot's
    numbers would remain; a remark is shown instead. The plot is hidden in two ways, because some
    sanitizers remove ``style``, and others a ``hidden`` without a value.
    """
    shown = f"<figure {_HIDDEN}>{drawn}<figcaption>{legend}</figcaption></figure>"
    return f'{shown}<p class="dse-plain">{_UNTRUSTED}</p>'


_HIDDEN = 'hidden="hidden" style="display:none"'
_UNTRUSTED = "(The drawing is shown where the notebook is trusted, or run again.)"


def _mark(kind: str, sign: str, words: str, *, there: bool) -> str:
    glyph = f'<b class="dse-mark-{kind}" aria-hidden="true">{sign}</b>'
    return f"<span>{glyph} {words}</span>" if there else ""


def _remarks(points: Points, objectives: Sequence[Objective]) -> list[str]:
    """Return remarks on omitted objectives, and on points beyond the axes."""
    beyond = hidden(points)
    words = [
        f"the first two of {len(objectives)} objectives" if len(objectives) > 2 else "",
        f"{beyond:,} beyond the axes" if beyond else "",
    ]
    return [f"<span>{word}</span>" for word in words if word]


def _along(points: Points) -> str:
    """Return the ranges of both axes as text."""
    return ", ".join(
        f"{one.axis.title} from {one.low:.4g} to {one.high:.4g}" for one in (points.x, points.y)
    )

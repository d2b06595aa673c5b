"""Trade-off figures of every pair of objectives: all trials faint, the front in colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dse.core.pareto import ParetoSet
from dse.core.recorded_gap import RecordedGap
from dse.core.trial import Trial
from dse.core.values import Floats, Mask
from dse.report.axes import Axis, tick_text, ticks
from dse.report.figures.scene import Quantity, Scene
from dse.report.figures.style import (
    BLUE,
    GREY,
    NUMBERS,
    ORANGE,
    SCALE,
    VERMILION,
    Drawing,
    axis_layout,
    blank,
    extent,
    hovers,
    text,
)
from dse.report.figures.undecided_region import UndecidedRegion, add_undecided
from dse.report.words import truncate_text

MAX_POINTS = 3_000
"""Maximum number of trials drawn besides the front; of more, evenly spaced ones."""

MAX_PAIRS = 10
"""Maximum number of pairs that are drawn, which is that of five objectives."""


def trade_off_figures(
    front: ParetoSet,
    trials: Sequence[Trial],
    weighty: Sequence[str] = (),
    *,
    gap: RecordedGap | None = None,
) -> list[Drawing]:
    """Return a trade-off figure for each pair of objectives.

    Args:
        front: the study's front.
        trials: all trials, in the order in which they were finished.
        weighty: the parameters by importance, the most important first, if known.
        gap: the study's gap, if it is known; the region where better designs may be is shaded.
    """
    scene = Scene.of(front, trials, MAX_POINTS, weighty)
    if not scene.answer.trials:
        return []
    words = hovers(scene.answer)
    pairs = list(combinations(range(len(scene.quantities)), 2))[:MAX_PAIRS]
    found = []
    for place, (x, y) in enumerate(pairs):
        several = len(front.problem.objectives) > 1
        region = UndecidedRegion.of(front, gap, x, y) if several else None
        found.append(_drawing(scene, words, (x, y), region, wide=not place))
    return found


def _drawing(
    scene: Scene,
    words: Sequence[str],
    pair: tuple[int, int],
    region: UndecidedRegion | None,
    *,
    wide: bool,
) -> Drawing:
    x, y = pair
    across, up = scene.quantities[x], scene.quantities[y]
    third = next((at for at in range(len(scene.quantities)) if at not in (x, y)), None)
    if region is not None:
        across, up = (
            replace(one, ends=_widened(one, region.optimistic[:, k]))
            for k, one in enumerate((across, up))
        )
    figure = blank(
        xaxis=axis_layout(across.axis, across.goal, across.ends),
        yaxis=axis_layout(up.axis, up.goal, up.ends),
    )
    if region is not None:
        add_undecided(figure, region, (across.axis, up.axis), (across.sign, up.sign))
    _add_others(figure, scene, across, up)
    _add_answer(figure, scene, across, up, None if third is None else scene.quantities[third])
    figure.data[-1].hovertext = words
    _add_marks(figure, scene, across, up)
    _add_limits(figure, across, up)
    title = f"{up.axis.name} over {across.axis.name}"
    return Drawing(
        key=f"pair-{x}-{y}",
        title=title,
        caption=_caption(scene, (across, up), None if third is None else scene.quantities[third])
        + _explain(region),
        figure=figure,
        wide=wide,
    )


def _widened(one: Quantity, losses: Floats) -> tuple[float, float] | None:
    """Return the ends of an axis, moved by at most half its range to show optimistic losses."""
    if one.ends is None or one.axis.log:
        return one.ends
    low, high = one.ends
    room = (high - low) / 2
    values = losses * one.sign * one.axis.factor
    low = max(low - room, min(low, float(values.min()) - 0.1 * room))
    return low, min(high + room, max(high, float(values.max()) + 0.1 * room))


def _explain(region: UndecidedRegion | None) -> str:
    if region is None:
        return ""
    return (
        " Dashed: the optimistic front, with the best values that designs without a measurement "
        f"may have; between it and the front it is {region.name}."
    )


def _add_others(figure: go.Figure, scene: Scene, across: Quantity, up: Quantity) -> None:
    looks: tuple[tuple[str, Mask, Mapping[str, Any]], ...] = (
        ("dominated", scene.feasible, {"color": GREY, "size": 5, "opacity": 0.55}),
        (
            "outside limits",
            ~scene.feasible,
            {"color": VERMILION, "size": 5, "opacity": 0.55, "symbol": "x"},
        ),
    )
    for name, rows, marker in looks:
        if rows.any():
            figure.add_scatter(
                name=name,
                x=across.others[rows],
                y=up.others[rows],
                customdata=scene.others.number[rows].tolist(),  # as a list: the page reads it
                hovertemplate="trial %{customdata}<br>%{x:.4~g}, %{y:.4~g}<extra></extra>",
                mode="markers",
                marker=marker,
            )


def _add_answer(
    figure: go.Figure, scene: Scene, across: Quantity, up: Quantity, third: Quantity | None
) -> None:
    size, edge = _look(len(scene.answer.trials))
    line = {"width": edge, "color": "#FFFFFF"}
    marker: dict[str, Any] = {"size": size, "color": BLUE, "line": line}
    if third is not None:
        marker |= _color_markers(third)
    stairs = len(scene.answer.problem.objectives) == 2 and scene.answer.feasible
    figure.add_scatter(
        name=scene.name,
        x=across.best,
        y=up.best,
        mode="lines+markers" if stairs else "markers",
        line={"shape": "hv", "color": BLUE, "width": 1.5},
        marker=marker,
        customdata=[trial.number for trial in scene.answer.trials],
        hoverinfo="text",
    )


def _look(count: int) -> tuple[int, int]:
    """Return the size and the edge width of a marker, in px, for this number of markers."""
    if count <= 100:
        return 10, 1
    return (7, 1) if count <= 500 else (5, 0)


def _color_markers(quantity: Quantity) -> dict[str, Any]:
    """Return plotly marker options that colour the front's designs by the quantity."""
    title = {"text": text(quantity.axis.title), "side": "right"}
    bar = {"title": title, "thickness": 10, "outlinewidth": 0, "tickformat": NUMBERS}
    values = quantity.best
    if quantity.axis.log:
        marks = ticks(float(values.min()), float(values.max()), log=True)
        values = np.log10(values)
        bar |= {"tickvals": np.log10(marks), "ticktext": [tick_text(mark) for mark in marks]}
    return {"color": values, "colorscale": SCALE, "colorbar": bar}


def _add_marks(figure: go.Figure, scene: Scene, across: Quantity, up: Quantity) -> None:
    if scene.knee is not None:
        at = [scene.knee]
        ring = {"symbol": "circle-open", "size": 18, "color": ORANGE, "line": {"width": 2.5}}
        _add_points(figure, "knee", across.best[at], up.best[at], ring)
    if len(across.baselines):
        diamond = {"symbol": "diamond-open", "size": 12, "color": VERMILION, "line": {"width": 2}}
        _add_points(figure, "baseline", across.baselines, up.baselines, diamond)
    if across.reference is not None and up.reference is not None:
        cross = {"symbol": "cross-thin-open", "size": 12, "color": GREY, "line": {"width": 2}}
        corner = np.array([across.reference]), np.array([up.reference])
        _add_points(figure, "reference point", *corner, cross)


def _add_points(
    figure: go.Figure, name: str, x: Floats, y: Floats, marker: Mapping[str, Any]
) -> None:
    figure.add_scatter(name=name, x=x, y=y, mode="markers", marker=marker, hoverinfo="name")


def _add_limits(figure: go.Figure, across: Quantity, up: Quantity) -> None:
    line = {"color": VERMILION, "width": 1.5, "dash": "dash"}
    for words, bound in _laid(across):
        figure.add_vline(x=bound, line=line)
        side = {"textangle": -90, "xanchor": "left", "y": 1, "yanchor": "top", "yref": "y domain"}
        figure.add_annotation(_note(words, x=_at(across.axis, bound), **side))
    for words, bound in _laid(up):
        figure.add_hline(y=bound, line=line)
        side = {"x": 1, "xanchor": "right", "xref": "x domain", "yanchor": "bottom"}
        figure.add_annotation(_note(words, y=_at(up.axis, bound), **side))


def _laid(quantity: Quantity) -> list[tuple[str, float]]:
    """Return the limits that an axis can show; a log axis only shows positive bounds."""
    return [mark for mark in quantity.marks if mark[1] > 0 or not quantity.axis.log]


def _at(axis: Axis, bound: float) -> float:
    """Return the coordinate at which plotly places an annotation: log10 on a log axis.

    On log axes plotly places annotations, unlike lines, by the exponent.
    """
    (place,) = extent(axis, [bound])
    return place


def _note(words: str, **place: Any) -> dict[str, Any]:
    return {"text": text(truncate_text(words, 40)), "showarrow": False, **place}


def _caption(scene: Scene, shown: tuple[Quantity, Quantity], third: Quantity | None) -> str:
    colour = "" if third is None else f" Colour: {third.axis.name}."
    far = int((~(shown[0].seen & shown[1].seen)).sum())
    lie = "lies" if far == 1 else "lie"
    away = f" {far:,} of these {lie} far away: Autoscale shows them." if far else ""
    return f"{scene.words}{away}{colour}"

"""3-D scatter plot of the first three objectives: trials faint, the front in colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dse.core.pareto import ParetoSet
from dse.core.trial import Trial
from dse.core.values import Floats
from dse.report.figures.scene import Quantity, Scene
from dse.report.figures.style import BLUE, GREY, NUMBERS, Drawing, blank, extent, hovers, text

MAX_OTHERS = 2_000
"""Maximum number of trials drawn besides the front; of more, evenly spaced ones."""


def space_figure(
    front: ParetoSet, trials: Sequence[Trial], weighty: Sequence[str] = ()
) -> list[Drawing]:
    """Return the 3-D plot of a front, in a list; empty with fewer than three objectives."""
    if len(front.problem.objectives) < 3:
        return []
    scene = Scene.of(front, trials, MAX_OTHERS, weighty)
    if len(scene.answer.trials) < 2:
        return []
    shown = scene.quantities[:3]
    figure = blank(height=520, scene=_scene(shown), margin={"l": 0, "r": 0, "t": 0, "b": 0})
    seen = np.all([one.seen for one in shown], axis=0)
    if seen.any():
        marks = {"size": 2.5, "color": GREY, "opacity": 0.5}
        cloud = [one.others[seen] for one in shown]
        numbers = scene.others.number[seen].tolist()
        figure.add_scatter3d(name="other trials", **_place_markers(cloud, numbers, marks))
    marks = {"size": 4, "color": BLUE}
    numbers = [trial.number for trial in scene.answer.trials]
    figure.add_scatter3d(
        name=scene.name,
        **_place_markers([one.best for one in shown], numbers, marks),
        hovertext=hovers(scene.answer),
        hoverinfo="text",
    )
    return [
        Drawing(
            key="space",
            title="The first three objectives together",
            caption="Drag to rotate, scroll to zoom; designs selected elsewhere are red here.",
            figure=figure,
            wide=True,
        )
    ]


def _place_markers(
    columns: Sequence[Floats], numbers: Sequence[int], marker: dict[str, Any]
) -> dict[str, Any]:
    return {
        **dict(zip("xyz", columns, strict=True)),
        "customdata": numbers,
        "mode": "markers",
        "marker": marker,
    }


def _scene(shown: Sequence[Quantity]) -> dict[str, Any]:
    return {
        "aspectmode": "manual",
        "aspectratio": {"x": 1.5, "y": 1.2, "z": 0.85},
        "camera": {"eye": {"x": 1.5, "y": -1.75, "z": 0.85}, "center": {"x": 0, "y": 0, "z": -0.2}},
        **{f"{letter}axis": _axis(one) for letter, one in zip("xyz", shown, strict=True)},
    }


def _axis(one: Quantity) -> dict[str, Any]:
    return {
        "title": {"text": text(one.axis.title), "font": {"size": 13}},
        "type": "log" if one.axis.log else "linear",
        "nticks": 6,
        "tickfont": {"size": 12},
        "backgroundcolor": "rgba(0,0,0,0)",
        "gridcolor": GREY,
        "color": GREY,
        "tickformat": NUMBERS,
        **({"range": extent(one.axis, one.ends)} if one.ends else {}),
    }

"""The first three objectives as a cloud to be turned: trials faint, the front in colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dse.core.pareto import ParetoSet
from dse.core.trial import State, Trial
from dse.core.values import Floats
from dse.report.answer import Answer, objective_values
from dse.report.axes import Axis, axis_of
from dse.report.figures.style import BLUE, GREY, Drawing, blank, hovers, text

MAX_OTHERS = 2_000
"""Of more trials than these, evenly spaced ones are drawn beside the front."""


def space_figure(front: ParetoSet, trials: Sequence[Trial]) -> list[Drawing]:
    """One figure where there are three objectives or more, and a browser with WebGL to draw it."""
    answer = Answer.of(front, trials)
    if len(front.problem.objectives) < 3 or len(answer.trials) < 2:
        return []
    shown = {trial.number for trial in answer.trials}
    others = [one for one in trials if one.state is State.DONE and one.number not in shown]
    others = others[:: -(-len(others) // MAX_OTHERS) or 1]
    cloud = objective_values(front.problem, others)[:, :3].reshape(-1, 3)
    best = answer.values[:, :3]
    axes = [
        axis_of(one.name, one.unit, np.concatenate([cloud[:, at], best[:, at]]))
        for at, one in enumerate(front.problem.objectives[:3])
    ]
    figure = blank(height=520, scene=_scene(axes), margin={"l": 0, "r": 0, "t": 0, "b": 0})
    if len(others):
        marks = {"size": 2.5, "color": GREY, "opacity": 0.5}
        figure.add_scatter3d(name="other trials", **_placed(cloud, axes, others, marks))
    marks = {"size": 5, "color": BLUE}
    figure.add_scatter3d(
        name="front",
        **_placed(best, axes, answer.trials, marks),
        hovertext=hovers(answer),
        hoverinfo="text",
    )
    return [
        Drawing(
            key="space",
            title="The first three objectives together",
            caption="Drag to turn, scroll to come nearer; what is picked elsewhere is red here.",
            figure=figure,
            wide=True,
        )
    ]


def _placed(
    values: Floats, axes: Sequence[Axis], trials: Sequence[Trial], marker: dict[str, Any]
) -> dict[str, Any]:
    columns = [values[:, at] * axis.factor for at, axis in enumerate(axes)]
    return {
        **dict(zip("xyz", columns, strict=True)),
        "customdata": [trial.number for trial in trials],
        "mode": "markers",
        "marker": marker,
    }


def _scene(axes: Sequence[Axis]) -> dict[str, Any]:
    return {
        f"{letter}axis": {
            "title": {"text": text(axis.title)},
            "type": "log" if axis.log else "linear",
            "exponentformat": "power",
            "backgroundcolor": "rgba(0,0,0,0)",
            "gridcolor": GREY,
            "color": GREY,
        }
        for letter, axis in zip("xyz", axes, strict=True)
    }

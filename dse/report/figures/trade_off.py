"""Every pair of objectives against each other: all trials faint, the front in colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dse.core.expression import Binary, Expression, Node, names_in
from dse.core.objective import Objective
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Mask
from dse.report.answer import Answer, objective_values
from dse.report.axes import Axis, axis_of
from dse.report.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    SCALE,
    VERMILION,
    Drawing,
    axis_layout,
    blank,
    hovers,
    text,
)

MAX_POINTS = 5_000
"""Of more trials than these, evenly spaced ones are drawn beside the front."""

MAX_PAIRS = 10
"""Of more than five objectives, only the first pairs are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """What one axis shows, in the axis's unit; ``marks`` are the limits on it."""

    axis: Axis
    goal: str
    others: Floats  # (n,)
    best: Floats  # (k,), the answer's
    reference: float | None = None
    marks: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What every pair is drawn from."""

    answer: Answer
    hovers: Sequence[str]  # k
    others: Sequence[Trial]  # n: done, and not in the answer
    feasible: Mask  # (n,)
    quantities: tuple[_Quantity, ...]
    knee: int | None

    @property
    def name(self) -> str:
        return "front" if self.answer.feasible else "nearest misses"


def trade_off_figures(front: ParetoSet, trials: Sequence[Trial]) -> list[Drawing]:
    """A figure for each pair of objectives; for a single one, against the trial's number."""
    answer = Answer.of(front, trials)
    if not answer.trials:
        return []
    scene = _scene(front, answer, trials)
    pairs = list(combinations(range(len(scene.quantities)), 2))[:MAX_PAIRS]
    return [_drawing(scene, x, y, wide=not place) for place, (x, y) in enumerate(pairs)]


def _scene(front: ParetoSet, answer: Answer, trials: Sequence[Trial]) -> _Scene:
    shown = {trial.number for trial in answer.trials}
    others = [t for t in trials if t.state is State.DONE and t.number not in shown]
    others = others[:: -(-len(others) // MAX_POINTS) or 1]
    values = objective_values(front.problem, others)
    points = front.reference_point or (None,) * len(front.problem.objectives)
    quantities = [
        _quantity(front.problem, objective, values[:, at], answer.values[:, at], points[at])
        for at, objective in enumerate(front.problem.objectives)
    ]
    if len(quantities) == 1:
        quantities.insert(0, _numbers(others, answer.trials))
    several = front.knee is not None and len(front.trials) > 2 and len(quantities) > 1
    return _Scene(
        answer=answer,
        hovers=hovers(answer),
        others=others,
        feasible=front.problem.feasible(others),
        quantities=tuple(quantities),
        knee=front.trials.index(front.knee) if several and front.knee else None,
    )


def _quantity(
    problem: Problem, objective: Objective, others: Floats, best: Floats, point: float | None
) -> _Quantity:
    axis = axis_of(objective.name, objective.unit, np.concatenate([others, best]))
    return _Quantity(
        axis=axis,
        goal=objective.goal,
        others=others * axis.factor,
        best=best * axis.factor,
        reference=None if point is None else point * axis.factor,
        marks=tuple((t, bound * axis.factor) for t, bound in _bounds(problem, objective)),
    )


def _numbers(others: Sequence[Trial], best: Sequence[Trial]) -> _Quantity:
    return _Quantity(
        axis=Axis(name="trial", unit="", factor=1.0, log=False),
        goal="",
        others=np.array([float(trial.number) for trial in others]),
        best=np.array([float(trial.number) for trial in best]),
    )


def _bounds(problem: Problem, objective: Objective) -> list[tuple[str, float]]:
    """The limits that bound this very objective by a constant, in its own unit."""
    found = []
    for limit in problem.limits:
        node = limit.slack.node
        sides: tuple[Node, ...] = (node.left, node.right) if isinstance(node, Binary) else ()
        constants = [side for side in sides if not names_in(side)]
        if len(constants) == 1 and objective.expression.node in sides:
            value = Expression("", constants[0]).values({}, 1).values[0]
            found.append((limit.text, float(value) / objective.scale))
    return found


def _drawing(scene: _Scene, x: int, y: int, *, wide: bool) -> Drawing:
    across, up = scene.quantities[x], scene.quantities[y]
    third = next((at for at in range(len(scene.quantities)) if at not in (x, y)), None)
    figure = blank(xaxis=axis_layout(across.axis, across.goal), yaxis=axis_layout(up.axis, up.goal))
    _add_others(figure, scene, across, up)
    _add_answer(figure, scene, across, up, None if third is None else scene.quantities[third])
    _add_marked(figure, scene, across, up)
    _add_limits(figure, across, up)
    title = f"{up.axis.name} over {across.axis.name}"
    return Drawing(
        key=f"pair-{x}-{y}",
        title=title,
        caption=_caption(scene, None if third is None else scene.quantities[third]),
        figure=figure,
        wide=wide,
    )


def _add_others(figure: go.Figure, scene: _Scene, across: _Quantity, up: _Quantity) -> None:
    looks: tuple[tuple[str, Mask, Mapping[str, Any]], ...] = (
        ("dominated", scene.feasible, {"color": GREY, "size": 5, "opacity": 0.55}),
        (
            "outside limits",
            ~scene.feasible,
            {"color": VERMILION, "size": 5, "opacity": 0.55, "symbol": "x"},
        ),
    )
    numbers = np.array([trial.number for trial in scene.others])
    for name, rows, marker in looks:
        if rows.any():
            figure.add_scatter(
                name=name,
                x=across.others[rows],
                y=up.others[rows],
                customdata=numbers[rows].tolist(),  # as a list: the page reads it
                hovertemplate="trial %{customdata}<br>%{x:.4~g}, %{y:.4~g}<extra></extra>",
                mode="markers",
                marker=marker,
            )


def _add_answer(
    figure: go.Figure, scene: _Scene, across: _Quantity, up: _Quantity, third: _Quantity | None
) -> None:
    size = 10 if len(scene.answer.trials) <= 100 else 7
    marker: dict[str, Any] = {"size": size, "color": BLUE, "line": {"width": 1, "color": "#FFFFFF"}}
    if third is not None:
        marker |= _coloured(third)
    stairs = len(scene.answer.problem.objectives) == 2 and scene.answer.feasible
    figure.add_scatter(
        name=scene.name,
        x=across.best,
        y=up.best,
        mode="lines+markers" if stairs else "markers",
        line={"shape": "hv", "color": BLUE, "width": 1.5},
        marker=marker,
        customdata=[trial.number for trial in scene.answer.trials],
        hovertext=scene.hovers,
        hoverinfo="text",
    )


def _coloured(quantity: _Quantity) -> dict[str, Any]:
    """Markers whose colour tells the quantity, on its own scale."""
    title = {"text": text(quantity.axis.title), "side": "right"}
    bar = {"title": title, "thickness": 10, "outlinewidth": 0, "exponentformat": "power"}
    values = quantity.best
    if quantity.axis.log:
        values = np.log10(values)
        marks = [m * 10.0**k for k in range(-20, 21) for m in (1, 2, 5)]
        bar |= {"tickvals": np.log10(marks), "ticktext": [f"{mark:g}" for mark in marks]}
    return {"color": values, "colorscale": SCALE, "colorbar": bar}


def _add_marked(figure: go.Figure, scene: _Scene, across: _Quantity, up: _Quantity) -> None:
    if scene.knee is not None:
        at = [scene.knee]
        ring = {"symbol": "circle-open", "size": 18, "color": ORANGE, "line": {"width": 2.5}}
        _add_points(figure, "knee", across.best[at], up.best[at], ring)
    baselines = [dict(design) for design in scene.answer.problem.baselines]
    for quantities, trials in (
        ((across.others, up.others), scene.others),
        ((across.best, up.best), scene.answer.trials),
    ):
        rows = [at for at, trial in enumerate(trials) if dict(trial.design) in baselines]
        if rows:
            diamond = {"symbol": "diamond-open", "size": 12, "color": VERMILION}
            _add_points(figure, "baseline", quantities[0][rows], quantities[1][rows], diamond)
    if across.reference is not None and up.reference is not None:
        cross = {"symbol": "cross-thin-open", "size": 12, "color": GREY, "line": {"width": 2}}
        corner = np.array([across.reference]), np.array([up.reference])
        _add_points(figure, "reference point", *corner, cross)


def _add_points(
    figure: go.Figure, name: str, x: Floats, y: Floats, marker: Mapping[str, Any]
) -> None:
    figure.add_scatter(name=name, x=x, y=y, mode="markers", marker=marker, hoverinfo="name")


def _add_limits(figure: go.Figure, across: _Quantity, up: _Quantity) -> None:
    line = {"color": VERMILION, "width": 1.5, "dash": "dash"}
    for words, bound in across.marks:
        note = {"text": text(words), "textangle": -90, "yanchor": "top", "xanchor": "left"}
        figure.add_vline(x=bound, line=line, annotation=note)
    for words, bound in up.marks:
        figure.add_hline(y=bound, line=line, annotation={"text": text(words), "xanchor": "right"})


def _caption(scene: _Scene, third: _Quantity | None) -> str:
    colour = "" if third is None else f" Colour: {third.axis.name}."
    many = f"{len(scene.answer.trials)} {'on the front' if scene.answer.feasible else scene.name}"
    return f"{many}, {len(scene.others)} other trials.{colour}"

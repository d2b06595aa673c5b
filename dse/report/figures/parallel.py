"""Parallel-coordinates figure of the front: parameters first, objectives last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from dse.core.objective import Objective
from dse.core.parameter import Choice, Integer, Parameter, Real
from dse.core.pareto import ParetoSet
from dse.core.trial import Trial
from dse.core.values import Floats, Value
from dse.report.answer import Answer
from dse.report.axes import is_log, shares
from dse.report.figures.style import SCALE, Drawing, blank, hovers, text, wrap_title
from dse.report.words import number_text, truncate_text, value_text

MAX_LINES = 150
"""Maximum number of designs that are drawn; of a larger front, evenly spaced ones."""

_SPOKE_PX = 78

_TITLE_LETTERS = 11

_MAX_RANKS = 9

_BELOW = -0.12


def parallel_figure(
    front: ParetoSet, trials: Sequence[Trial], weighty: Sequence[str] = ()
) -> list[Drawing]:
    """Return the parallel-coordinates figure as a list; empty for fewer than two designs."""
    answer = Answer.of(front, trials, weighty)
    if len(answer.trials) < 2:
        return []
    whole, answer = len(answer.trials), answer.thin(MAX_LINES)
    axes = spokes(answer)
    figure = blank(
        xaxis={"visible": False, "range": [-0.5, len(axes) - 0.3], "fixedrange": True},
        yaxis={"visible": False, "range": [-0.17, 1.27], "fixedrange": True},
        showlegend=False,
        height=400,
        margin={"l": 4, "r": 4, "t": 0, "b": 0},
    )
    _add_lines(figure, answer, axes)
    figure.update_layout(  # in one call: adding each separately takes ten times as long
        shapes=[_line(place) for place in range(len(axes))],
        annotations=[one for place, spoke in enumerate(axes) for one in _words(place, spoke)],
    )
    first = answer.problem.objectives[0]
    size = len(answer.trials)
    some = f" {size} of {whole:,} designs are drawn." if size < whole else ""
    some += f" {answer.omission_note}" if answer.omission_note else ""
    return [
        Drawing(
            key="parallel",
            title="What the best designs have in common",
            caption=(
                "One line for each design. Objectives are on the right, the best at the top"
                f"{', next to the parameters that affect them most' if weighty else ''}; "
                f"colour: {first.text}, from worst (blue) to best (orange).{some}"
            ),
            figure=figure,
            wide=True,
            least_px=_SPOKE_PX * len(axes),
        )
    ]


def _add_lines(figure: go.Figure, answer: Answer, axes: Sequence[Spoke]) -> None:
    shade = axes[-len(answer.problem.objectives)].places
    colours = sample_colorscale(SCALE, np.clip(shade, 0, 1).tolist())
    words = hovers(answer)
    for row, trial in enumerate(answer.trials):
        figure.add_scatter(
            x=np.arange(len(axes)),
            y=np.array([spoke.places[row] for spoke in axes]),
            mode="lines+markers",
            line={"color": colours[row], "width": 2},
            marker={"size": 6, "color": colours[row]},
            opacity=0.85,
            customdata=[trial.number] * len(axes),
            hovertext=words[row],
            hoverinfo="text",
        )


def _line(place: int) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": place,
        "x1": place,
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"color": "#8C8C8C"},
    }


def _words(place: int, spoke: Spoke) -> list[dict[str, Any]]:
    """Return the text annotations of a parallel axis: the title above it, and its ticks."""
    title = f"<b>{wrap_title(spoke.title, _TITLE_LETTERS)}</b>"
    shared = {"x": place, "showarrow": False}
    return [
        {**shared, "y": 1.07, "yanchor": "bottom", "text": title},
        *(
            {
                **shared,
                "y": height,
                "xanchor": "left",
                "xshift": 5,
                "text": text(truncate_text(words, _TITLE_LETTERS)),
                "font": {"size": 11},
                "bgcolor": "rgba(255,255,255,0.7)",
            }
            for height, words in spoke.ticks
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoke:
    """Axis of a parallel-coordinates plot: the position of each design in [0, 1], and ticks."""

    title: str
    places: Floats  # (n,)
    ticks: tuple[tuple[float, str], ...]


def spokes(answer: Answer) -> list[Spoke]:
    """Return the axes of a parallel-coordinates plot: varying parameters, then objectives.

    Objectives have the best value at the top. The more important a parameter, the nearer it is to
    the objectives. If there are too many parameters, only those that the report shows for each
    design have an axis.
    """
    rank = {name: -place for place, name in enumerate(answer.weighty)}
    shown_names = [name for name in answer.varying if name in set(answer.shown_parameters)]
    names = sorted(shown_names, key=lambda name: rank.get(name, -len(rank)))
    by_name = answer.problem.space.by_name
    parameters = [
        _parameter_spoke(by_name[name], [trial.design.get(name) for trial in answer.trials])
        for name in names
    ]
    columns = zip(answer.problem.objectives, answer.values.T, strict=True)
    return parameters + [_objective_spoke(objective, column) for objective, column in columns]


def _parameter_spoke(parameter: Parameter, values: Sequence[Value | None]) -> Spoke:
    present = {value for value in values if value is not None}
    if isinstance(parameter, Choice):
        return _rank_values(parameter, values, [v for v in parameter.values if v in present])
    if len(present) == 1 or (not isinstance(parameter, Real) and len(present) <= _MAX_RANKS):
        return _rank_values(parameter, values, sorted(present, key=float))
    return _continuous(parameter, values)


def _rank_values(
    parameter: Parameter, values: Sequence[Value | None], order: Sequence[Value]
) -> Spoke:
    """Place the occurring values at equal distances, with inactive ones lowest."""
    ordered: list[Value | None] = [None, *order] if None in values else [*order]
    place = {value: rank / max(len(ordered) - 1, 1) for rank, value in enumerate(ordered)}
    ticked = ordered[:: -(-len(ordered) // (2 * _MAX_RANKS))]
    return Spoke(
        title=parameter.name,
        places=np.array([place[value] for value in values]),
        ticks=tuple((place[value], value_text(value, parameter.unit)) for value in ticked),
    )


def _continuous(parameter: Parameter, values: Sequence[Value | None]) -> Spoke:
    """Place numbers on the parameter's scale between the occurring ends, inactive ones below."""
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    log = _has_log_scale(parameter, numbers)
    along = shares(numbers, low, high, log=log)
    middle = float(np.sqrt(low * high)) if log else (low + high) / 2
    ends = ((0.0, low), (0.5, middle), (1.0, high))
    ticks = [(place, number_text(value, parameter.unit)) for place, value in ends]
    if np.isnan(along).any():
        ticks.append((_BELOW, value_text(None)))
    places = np.where(np.isnan(along), _BELOW, along)
    return Spoke(title=parameter.name, places=places, ticks=tuple(ticks))


def _has_log_scale(parameter: Parameter, numbers: Floats) -> bool:
    """Return whether to use a log scale; a list of numbers has no scale, so its range decides."""
    if isinstance(parameter, Real | Integer):
        return parameter.scale == "log"
    return is_log(numbers)


def _objective_spoke(
    objective: Objective,
    values: Floats,  # (n,)
) -> Spoke:
    best_first = -objective.sign
    worst, best = np.min(best_first * values), np.max(best_first * values)
    span = best - worst
    places = (best_first * values - worst) / span if span > 0 else np.ones(len(values))
    ends = [(1.0, best)] if span == 0 else [(0.0, worst), (0.5, (worst + best) / 2), (1.0, best)]
    ticks = [(at, number_text(float(best_first * end), objective.unit)) for at, end in ends]
    return Spoke(title=objective.name, places=places, ticks=tuple(ticks))

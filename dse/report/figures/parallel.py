"""Parallel-coordinates figure of the front: parameters first, objectives last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from dse.core.pareto import ParetoSet
from dse.core.trial import Trial
from dse.report.answer import Answer
from dse.report.figures.spokes import Spoke, spokes
from dse.report.figures.style import SCALE, Drawing, blank, hovers, text, wrap_title
from dse.report.words import truncate_text

MAX_LINES = 150
"""Maximum number of designs that are drawn; of a larger front, evenly spaced ones."""

_SPOKE_PX = 78
_TITLE_LETTERS = 11


def parallel_figure(
    front: ParetoSet, trials: Sequence[Trial], weighty: Sequence[str] = ()
) -> list[Drawing]:
    """Return the parallel-coordinates figure in a list; empty for fewer than two designs."""
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
    some += f" {answer.untold}" if answer.untold else ""
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
    """Return the annotations of a parallel axis: its title above, and its ticks."""
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

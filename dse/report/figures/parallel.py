"""The designs of the front as lines across parallel axes: parameters first, objectives last."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from dse.core.pareto import ParetoSet
from dse.core.trial import Trial
from dse.core.values import Ints
from dse.report.answer import Answer
from dse.report.axes import Spoke, spokes
from dse.report.figures.style import SCALE, Drawing, blank, hovers, text

MAX_LINES = 150
"""Of a larger front, evenly spaced designs are drawn."""

_SPOKE_PX = 78
_TITLE_LETTERS = 11


def parallel_figure(
    front: ParetoSet, trials: Sequence[Trial], weighty: Sequence[str] = ()
) -> list[Drawing]:
    """One figure, or none where there are no two designs to hold side by side."""
    answer = Answer.of(front, trials)
    if len(answer.trials) < 2:
        return []
    drawn = np.unique(np.linspace(0, len(answer.trials) - 1, MAX_LINES).round().astype(np.int64))
    axes = spokes(answer, weighty)
    figure = blank(
        xaxis={"visible": False, "range": [-0.5, len(axes) - 0.3], "fixedrange": True},
        yaxis={"visible": False, "range": [-0.17, 1.27], "fixedrange": True},
        showlegend=False,
        height=400,
        margin={"l": 4, "r": 4, "t": 0, "b": 0},
    )
    _add_lines(figure, answer, axes, drawn)
    for place, spoke in enumerate(axes):
        _add_spoke(figure, place, spoke)
    first = answer.problem.objectives[0]
    some = (
        f" {len(drawn)} of {len(answer.trials)} designs are drawn."
        if len(drawn) < len(answer.trials)
        else ""
    )
    return [
        Drawing(
            key="parallel",
            title="What the best designs have in common",
            caption=(
                "One line for each design. Objectives stand to the right, the best at the top"
                f"{', what moves them most beside them' if weighty else ''}; "
                f"colour: {first.text}, from worst (blue) to best (orange).{some}"
            ),
            figure=figure,
            wide=True,
            least_px=_SPOKE_PX * len(axes),
        )
    ]


def _add_lines(figure: go.Figure, answer: Answer, axes: Sequence[Spoke], drawn: Ints) -> None:
    shade = axes[-len(answer.problem.objectives)].places
    colours = sample_colorscale(SCALE, np.clip(shade, 0, 1).tolist())
    words = hovers(answer)
    for row in drawn.tolist():
        figure.add_scatter(
            x=np.arange(len(axes)),
            y=np.array([spoke.places[row] for spoke in axes]),
            mode="lines+markers",
            line={"color": colours[row], "width": 2},
            marker={"size": 6, "color": colours[row]},
            opacity=0.85,
            customdata=[answer.trials[row].number] * len(axes),
            hovertext=words[row],
            hoverinfo="text",
        )


def _add_spoke(figure: go.Figure, place: int, spoke: Spoke) -> None:
    figure.add_shape(
        type="line", x0=place, x1=place, y0=0, y1=1, layer="below", line={"color": "#8C8C8C"}
    )
    title = "<br>".join(map(text, _wrapped(spoke.title)))
    figure.add_annotation(
        x=place, y=1.07, yanchor="bottom", text=f"<b>{title}</b>", showarrow=False
    )
    for height, words in spoke.ticks:
        figure.add_annotation(
            x=place,
            y=height,
            xanchor="left",
            xshift=5,
            text=text(_cut(words)),
            font={"size": 11},
            showarrow=False,
            bgcolor="rgba(255,255,255,0.7)",
        )


def _cut(words: str) -> str:
    return words if len(words) <= _TITLE_LETTERS else words[: _TITLE_LETTERS - 1] + "…"


def _wrapped(title: str) -> list[str]:
    """The title in short lines, broken after dots and underscores and between words."""
    lines = textwrap.wrap(title.replace(".", ". ").replace("_", "_ "), _TITLE_LETTERS)
    return [line.replace(". ", ".").replace("_ ", "_") for line in lines]

"""Figures of parameter importance: shares of the variance, and partial dependence curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.analysis.importance import Importance, Slice
from dse.core.objective import Objective
from dse.core.problem import Problem
from dse.report.axes import Axis, axis_of
from dse.report.figures.style import (
    BLUE,
    NUMBERS,
    Drawing,
    axis_layout,
    blank,
    text,
    tint_series,
    wrap_title,
)
from dse.report.words import parameter_units, truncate_text, value_text

MOST_DRAWN = 10
"""Maximum number of parameters that are drawn, the most important ones."""

_TITLE_LETTERS = 14
_LETTERS = 22


def importance_figures(problem: Problem, found: Sequence[Importance]) -> list[Drawing]:
    """Return two figures per objective: variance shares of parameters, and partial dependence."""
    drawn = []
    for one in found:
        objective = problem.objectives[one.place]
        drawn += [_shares(objective, one), _slices(problem, objective, one)]
    return drawn


def _shares(objective: Objective, one: Importance) -> Drawing:
    shown = one.shares[:MOST_DRAWN][::-1]
    figure = blank(
        xaxis=axis_layout(Axis(name="share of the variance", unit="%", factor=100.0)),
        yaxis={
            "automargin": True,
            "tickvals": list(range(len(shown))),
            "ticktext": [text(truncate_text(name, _LETTERS)) for name, _ in shown],
        },
        showlegend=False,
        height=90 + 26 * len(shown),
    )
    figure.update_xaxes(rangemode="tozero")
    figure.add_bar(
        x=[100 * share for _, share in shown],
        y=list(range(len(shown))),  # indices, as two truncated names may be equal
        hovertext=[text(truncate_text(name)) for name, _ in shown],
        orientation="h",
        marker={"color": BLUE},
        hovertemplate="%{hovertext}: %{x:.3~g} %<extra></extra>",
    )
    explained = f"{100 * one.explained:.0f} %"
    return Drawing(
        key=f"importance-{one.place}",
        title=f"What moves {objective.name}",
        caption=(
            "Total effects: the variance that would remain if all but this parameter were known. "
            f"From a forest over {'uniform designs' if one.fresh else 'the trials'}, which explains"
            f" {explained} of the variance of designs held out from its training."
        ),
        figure=figure,
    )


def _slices(problem: Problem, objective: Objective, one: Importance) -> Drawing:
    every = np.concatenate([each.means for each in one.slices])
    axis = axis_of(objective.name, objective.unit, every)
    figure = make_subplots(
        rows=1,
        cols=len(one.slices),
        shared_yaxes=True,
        subplot_titles=[wrap_title(each.parameter, _TITLE_LETTERS) for each in one.slices],
        horizontal_spacing=0.03,
    )
    margin = {"l": 12, "r": 12, "t": 70, "b": 12}
    figure.update_layout(blank(showlegend=False, height=360, margin=margin).layout)
    figure.update_annotations(font={"size": 12})
    units = parameter_units(problem)
    for column, each in enumerate(one.slices, start=1):
        _add_slice(figure, each, axis, units[each.parameter], column)
    figure.update_yaxes(gridcolor="#CCCCCC", zeroline=False, tickformat=NUMBERS)
    figure.update_yaxes(title={"text": text(axis.title)}, col=1)
    return Drawing(
        key=f"slices-{one.place}",
        title=f"{objective.name} along its most important parameters",
        caption="The mean over the other parameters; the band is the spread between trees.",
        figure=figure,
        least_px=130 * len(one.slices),
    )


def _add_slice(figure: go.Figure, one: Slice, axis: Axis, unit: str, column: int) -> None:
    words = [text(truncate_text(value_text(value, unit), _LETTERS)) for value in one.values]
    for edge, fill in ((one.lows, None), (one.highs, "tonexty")):
        figure.add_scatter(
            x=words,
            y=edge * axis.factor,
            mode="lines",
            line={"width": 0},
            fill=fill,
            fillcolor=tint_series(0, 0.2),
            hoverinfo="skip",
            row=1,
            col=column,
        )
    figure.add_scatter(
        x=words,
        y=one.means * axis.factor,
        mode="lines+markers",
        line={"color": BLUE},
        hovertemplate="%{x}: %{y:.4~g}<extra></extra>",
        row=1,
        col=column,
    )
    figure.update_xaxes(type="category", automargin=True, tickangle=-60, row=1, col=column)

"""Figures of main effects: one line per parameter over its levels, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from dse.analysis.effects import Effects
from dse.core.problem import Problem
from dse.report.axes import axis_of
from dse.report.effect_tables import level_text, share_text
from dse.report.figures.style import BLUE, GREY, Drawing, axis_layout, blank, text
from dse.report.words import number_text, parameter_units

MOST_DRAWN = 10
"""Maximum number of parameters that are drawn, those with the largest effects."""


def effects_figures(problem: Problem, found: Sequence[Effects]) -> list[Drawing]:
    """Return a figure of the parameters' main effects for each metric."""
    return [_figure(problem, one, place) for place, one in enumerate(found) if one.main]


def _figure(problem: Problem, found: Effects, place: int) -> Drawing:
    import numpy as np

    units = parameter_units(problem)
    shown = found.main[:MOST_DRAWN]
    every = np.array([level.mean for effect in shown for level in effect.levels])
    axis = axis_of(found.name, found.unit, every)
    figure = blank(
        yaxis={**axis_layout(axis), "type": "linear"},
        xaxis={"automargin": True, "tickangle": -60},
        showlegend=False,
    )
    for effect in shown:
        names = [text(level_text(level, units[effect.parameter])) for level in effect.levels]
        heading = text(f"{effect.parameter} ({share_text(effect.share)})")
        figure.add_trace(
            go.Scatter(
                x=[[heading] * len(names), names],
                y=[level.mean * axis.factor for level in effect.levels],
                mode="lines+markers",
                line={"color": BLUE},
                hovertext=[
                    f"{heading}: {name}: {text(number_text(level.mean, found.unit))}"
                    for name, level in zip(names, effect.levels, strict=True)
                ],
                hoverinfo="text",
            )
        )
    figure.add_hline(y=found.mean * axis.factor, line={"color": GREY, "dash": "dot"})
    levels = sum(len(effect.levels) for effect in shown)
    return Drawing(
        key=f"effects-{place}",
        title=f"Main effects on {found.name}",
        caption="The mean at each level of each parameter; in brackets its share of the variance.",
        figure=figure,
        wide=True,
        least_px=max(280, 26 * levels),
    )

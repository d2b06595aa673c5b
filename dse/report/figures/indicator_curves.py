"""Figures of quality indicators over cost for each group of studies: median and quartiles."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dse.analysis.comparison import ComparisonResult
from dse.analysis.curves import Curves
from dse.analysis.references import INDICATORS, Indicator
from dse.analysis.runs import Currency
from dse.core.values import Floats
from dse.report.axes import Axis, is_log, seconds_axis
from dse.report.figures.style import Drawing, axis_layout, blank, text, tint_series
from dse.report.text.conclusion_sentences import INDICATOR_WORDS

SHAPE = "hv"
"""Shape of the lines: a study keeps its best result until it finds a better one."""


def curve_figures(comparison: ComparisonResult, drawn: list[Curves]) -> list[Drawing]:
    """Return hypervolume curves over each unit of budget, other indicators over the main unit."""
    figures = [_drawing(comparison, one, "hypervolume") for one in drawn]
    own = next((one for one in drawn if one.currency == comparison.over), drawn[0])
    figures += [_drawing(comparison, own, name) for name in INDICATORS if name != "hypervolume"]
    return figures


def _drawing(comparison: ComparisonResult, curves: Curves, indicator: Indicator) -> Drawing:
    axis = _axis(curves.currency, float(curves.grid[-1]))
    word = INDICATOR_WORDS[indicator]
    factor, unit = (comparison.yardstick.percent, "%") if indicator == "hypervolume" else (1.0, "")
    bands = [factor * curves.quartiles(place, indicator) for place in range(len(comparison.groups))]
    log = is_log(np.stack(bands))
    figure = blank(
        xaxis=axis_layout(axis),
        yaxis=axis_layout(Axis(name=word, unit=unit, log=log)),
        height=340,
    )
    figure.update_yaxes(rangemode="normal" if log else "tozero")
    figure.update_layout(legend_traceorder="normal")
    for place, group in enumerate(comparison.groups):
        _add(figure, group.name, place, curves.grid * axis.factor, bands[place])
    if curves.currency == comparison.over:
        line = {"color": "#8C8C8C", "width": 1, "dash": "dot"}
        figure.add_vline(x=comparison.at * axis.factor, line=line)
    better = "more is better" if indicator == "hypervolume" else "less is better"
    some = any(len(group.results) > 1 for group in comparison.groups)
    band = " Lines are medians, bands the middle half of the studies." if some else ""
    return Drawing(
        key=f"curve-{indicator}-{curves.currency}",
        title=f"{word[0].upper()}{word[1:]} over {axis.name}",
        caption=f"{better[0].upper()}{better[1:]}.{band}",
        figure=figure,
    )


def _add(figure: go.Figure, name: str, place: int, across: Floats, quartiles: Floats) -> None:
    low, middle, high = (np.where(np.isfinite(row), row, np.nan) for row in quartiles)
    colour, band = tint_series(place, 1.0), tint_series(place, 0.15)
    if not np.array_equal(low, high, equal_nan=True):
        edge = {"color": "rgba(0,0,0,0)", "shape": SHAPE}
        shared = {"x": across, "mode": "lines", "line": edge, "hoverinfo": "skip"}
        figure.add_scatter(**shared, y=low, showlegend=False)
        figure.add_scatter(**shared, y=high, showlegend=False, fill="tonexty", fillcolor=band)
    figure.add_scatter(
        name=text(name),
        x=across,
        y=middle,
        mode="lines",
        line={"shape": SHAPE, "color": colour, "width": 2.5},
        hovertemplate="%{x:.4~g}: %{y:.5~g}",
        showlegend=True,
    )


def _axis(currency: Currency, most: float) -> Axis:
    if currency == "seconds":
        return seconds_axis("evaluation time", most)
    unit = "$" if currency == "cost" else ""
    return Axis(name=currency, unit=unit)

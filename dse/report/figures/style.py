"""Common style of all figures: colours, axes, hover text."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from dse.core.trial import Trial
from dse.report.answer import Answer
from dse.report.axes import Axis
from dse.report.words import design_text, number_text, parameter_units

# Okabe and Ito: Color Universal Design, 2008. All are distinguishable on white and on black.
BLUE, ORANGE, VERMILION, GREY = "#0072B2", "#E69F00", "#D55E00", "#8C8C8C"
SERIES = (BLUE, VERMILION, "#009E73", "#CC79A7", ORANGE, "#56B4E9", "#F0E442", GREY)
SCALE = [[0.0, BLUE], [0.5, "#9A9A9A"], [1.0, ORANGE]]

HEIGHT_PX = 440
_MOST_LINES = 4

_AXIS_LETTERS = 44
"""Maximum characters per line of an axis title, about the height of a figure."""

NUMBERS = ",.9~g"
"""Plotly's number format along an axis: 20,000 and not 2x10^4, and 20.00012 in full."""

_LOG = {
    "nticks": 3,  # a short axis also labels 2 and 5; with more ticks plotly labels every digit
    "tickformat": NUMBERS,
    "minor": {"dtick": "D1", "showgrid": True, "gridcolor": "#CCCCCC", "griddash": "dot"},
}
_LINEAR = {"nticks": 7, "tickformat": NUMBERS}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Figure with title and caption; on a page narrower than ``least_px`` it scrolls sideways."""

    key: str
    title: str
    caption: str
    figure: go.Figure
    wide: bool = False
    least_px: int = 280


def blank(**layout: Any) -> go.Figure:
    """Return an empty plotly figure with a transparent background."""
    shared = {
        "template": go.layout.Template(),
        "font": {"family": _FONT, "size": 12},
        "height": HEIGHT_PX,
        "margin": {"l": 12, "r": 12, "t": 12, "b": 12},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "entrywidth": 92},
    }
    return go.Figure(layout={**shared, **layout})


def axis_layout(
    axis: Axis, goal: str = "", ends: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Return plotly's layout of an axis, with the goal in its title and optional fixed ends."""
    title = wrap_title(f"{axis.title}, {goal}" if goal else axis.title, _AXIS_LETTERS)
    return {
        "title": {"text": title, "standoff": 8},
        "type": "log" if axis.log else "linear",
        "gridcolor": "#CCCCCC",
        "zeroline": False,
        "automargin": True,
        **(_LOG if axis.log else _LINEAR),
        **({"range": extent(axis, ends)} if ends else {}),
    }


def extent(axis: Axis, places: Iterable[float]) -> list[float]:
    """Return the two ends of an axis in plotly's coordinates: log10 of them on a log axis."""
    return [math.log10(place) if axis.log and place > 0 else place for place in places]


def tint_series(place: int, opacity: float) -> str:
    """Return the colour of the series with an index, as a CSS colour with a given opacity."""
    colour = SERIES[place % len(SERIES)]
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def text(words: str) -> str:
    """Escape a text so that plotly does not read it as markup."""
    return html.escape(words)


def wrap_title(title: str, letters: int) -> str:
    """Break a title into at most four lines, after dots and underscores and at spaces."""
    lines = textwrap.wrap(title.replace(".", ". ").replace("_", "_ "), letters)
    lines = [line.replace(". ", ".").replace("_ ", "_") for line in lines]
    kept = lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "…"]
    return "<br>".join(map(text, kept))


def hovers(answer: Answer) -> list[str]:
    """Return the hover text of each design: its objectives, then its parameters."""
    units = parameter_units(answer.problem)
    return [
        "<br>".join(
            [
                f"<b>trial {trial.number}</b>",
                *_objectives(answer, place),
                _design(trial, answer, units),
            ]
        )
        for place, trial in enumerate(answer.trials)
    ]


def _objectives(answer: Answer, place: int) -> list[str]:
    pairs = zip(answer.problem.objectives, answer.values[place].tolist(), strict=True)
    return [
        text(f"{o.name}: {number_text(value, o.unit, written=o.written)}") for o, value in pairs
    ]


def _design(trial: Trial, answer: Answer, units: dict[str, str]) -> str:
    return "<br>".join(
        text(design_text(trial.design, [n], units))
        for n in answer.shown_parameters
        if n in trial.design
    )

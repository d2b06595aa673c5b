"""Regret over trials and over optimizer seconds, as one self-contained page.

Run: python benchmarks/optimizers figures cells.csv [more.csv ...] [-o regret.html]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from regret import Curve, Curves

from dse.core.values import Floats

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#8C8C8C", "#000000")
"""Okabe and Ito: Color Universal Design, 2008; the optimizers take them in the files' order."""

LEAST = 1e-4
"""The axis ends here: a regret below it is drawn on it."""

_STEPS = 60


def main(arguments: Sequence[str]) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--problem", action="append", help="only this problem")
    parser.add_argument("-o", type=Path, default=Path("regret.html"), help="the page")
    chosen = parser.parse_args(arguments)
    chosen.o.write_text(page(Curves.of(chosen.files).only(chosen.problem)), encoding="utf-8")
    print(chosen.o)


def page(curves: Curves) -> str:
    """Two figures for each problem."""
    figures = [
        f"<h2>{escape(problem)}</h2>\n{_html(over_trials(curves, problem))}"
        f"\n{_html(over_seconds(curves, problem))}"
        for problem in curves.problems
    ]
    head = f"<meta charset='utf-8'><title>Regret</title><script>{get_plotlyjs()}</script>"
    return (
        f"<!doctype html>\n<html><head>{head}</head><body>\n"
        + "\n".join(figures)
        + "</body></html>"
    )


def over_trials(curves: Curves, problem: str) -> go.Figure:
    """Median regret and quartiles after each trial, as far as every seed came."""
    figure = _blank("trials", log=False)
    for name, runs, colour in _runs(curves, problem):
        length = min(len(run.regrets) for run in runs)
        quartiles = _quartiles(np.array([run.regrets[:length] for run in runs]))
        _draw(figure, name, np.arange(1.0, length + 1), quartiles, colour)
    return figure


def over_seconds(curves: Curves, problem: str) -> go.Figure:
    """The same over the processor seconds that the optimizer took."""
    figure = _blank("processor seconds of the optimizer", log=True)
    for name, runs, colour in _runs(curves, problem):
        first = max(1e-3, *(run.seconds[0] for run in runs))
        last = max(min(run.seconds[-1] for run in runs), first)
        grid = np.geomspace(first, last, _STEPS)
        _draw(figure, name, grid, _quartiles(np.array([_held(run, grid) for run in runs])), colour)
    return figure


def _runs(curves: Curves, problem: str) -> list[tuple[str, list[Curve], str]]:
    return [
        (name, list(curves.by_seed[problem, name].values()), COLOURS[place % len(COLOURS)])
        for place, name in enumerate(curves.optimizers)
        if (problem, name) in curves.by_seed
    ]


def _held(run: Curve, grid: Floats) -> Floats:
    """The regret that the run had at these seconds."""
    places = np.searchsorted(run.seconds, grid, side="right") - 1
    return run.regrets[np.clip(places, 0, None)]


def _quartiles(regrets: Floats) -> Floats:
    return np.maximum(np.percentile(regrets, [25, 50, 75], axis=0), LEAST)


def _draw(figure: go.Figure, name: str, over: Floats, quartiles: Floats, colour: str) -> None:
    low, middle, high = quartiles
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    figure.add_scatter(
        x=np.append(over, over[::-1]),
        y=np.append(high, low[::-1]),
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.12)",
        line={"width": 0},
        hoverinfo="skip",
        legendgroup=name,
        showlegend=False,
    )
    figure.add_scatter(
        x=over,
        y=middle,
        name=name,
        legendgroup=name,
        line={"color": colour, "width": 2, "shape": "hv"},
        hovertemplate="%{x:.4~g}: %{y:.3~g}",
    )


def _blank(over: str, *, log: bool) -> go.Figure:
    grid = {"gridcolor": "#CCCCCC", "zeroline": False, "automargin": True}
    return go.Figure(
        layout={
            "template": go.layout.Template(),
            "height": 420,
            "width": 900,
            "xaxis": {**grid, "title": over, "type": "log" if log else "linear"},
            "yaxis": {**grid, "title": "regret of hypervolume", "type": "log", "dtick": 1},
        }
    )


def _html(figure: go.Figure) -> str:
    text: str = figure.to_html(include_plotlyjs=False, full_html=False)
    return text

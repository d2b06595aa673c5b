"""Timeline of the workers: a bar per trial, or the share of busy time if trials are many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dse.analysis.timeline import Timeline, timeline
from dse.core.trial import State, Trial
from dse.core.trials import STATES
from dse.core.values import Floats
from dse.report.axes import Axis, seconds_axis
from dse.report.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    SERIES,
    VERMILION,
    Drawing,
    axis_layout,
    blank,
    tint_series,
)
from dse.report.words import seconds_text

MOST_BARS = 1_500
"""Maximum number of bars; more would be thinner than a pixel and make pages of megabytes."""

MOST_LANES = 40
_BINS = 240

_LANE_PX, _LEAST_PX = 18, 140
_COLOURS = {
    State.DONE: BLUE,
    State.FAILED: VERMILION,
    State.INFEASIBLE: ORANGE,
    State.STOPPED: SERIES[3],
    State.SCREENED: SERIES[5],
    State.RUNNING: SERIES[2],
    State.OUTSIDE: GREY,
    State.PENDING: GREY,
}


def timeline_figure(trials: Sequence[Trial], *, measured: bool) -> list[Drawing]:
    """Return the timeline figure in a list; empty if nothing is measured or no time recorded."""
    found = timeline(trials) if measured else None
    if found is None or not found.span_s:
        return []
    axis = seconds_axis("time at work", found.span_s)
    single = len(found.trial) <= MOST_BARS and len(found.lanes) <= MOST_LANES
    return [
        Drawing(
            key="timeline",
            title="Who evaluated when",
            caption=_caption(found, single=single),
            figure=_bars(found, axis) if single else _shares(found, axis),
            wide=True,
            least_px=420,
        )
    ]


def _caption(found: Timeline, *, single: bool) -> str:
    lanes = f"{len(found.lanes)} {'lanes' if len(found.lanes) > 1 else 'lane'}"
    words = f"{found.busy:.0%} of {lanes} busy over {seconds_text(found.span_s)}"
    per_hour = f"{found.per_hour:,.0f}" if found.per_hour >= 100 else f"{found.per_hour:.3g}"
    rate = f"{per_hour} trials an hour"
    bars = (
        "A bar is an evaluation, a thin line before it a trial that waits for it"
        if single
        else "The darker, the more of the time was spent evaluating"
    )
    pauses = "; dotted lines are pauses, left out" if len(found.pauses) else ""
    return f"{words}, {rate}. {bars}; empty parts were idle{pauses}."


def _bars(found: Timeline, axis: Axis) -> go.Figure:
    figure = _blank(found, axis, len(found.lanes), barmode="overlay")
    names = np.array([_lane_name(found, lane) for lane in found.lanes], dtype=object)
    _add_waits(figure, found, axis, names)
    for place in np.unique(found.state).tolist():
        rows = found.state == place
        length = found.end[rows] - found.start[rows]
        figure.add_bar(
            name=STATES[place].value,
            orientation="h",
            base=found.start[rows] * axis.factor,
            x=length * axis.factor,
            y=names[found.lane[rows]],
            marker={"color": _COLOURS[STATES[place]], "line": {"width": 0}},
            hovertext=[
                f"trial {trial}: {seconds_text(lasted)}"
                for trial, lasted in zip(found.trial[rows], length, strict=True)
            ],
            hoverinfo="text+name",
        )
    return figure


def _add_waits(figure: go.Figure, found: Timeline, axis: Axis, names: np.ndarray) -> None:
    """Draw each trial's wait: from when it was suggested and its worker was free to its start."""
    order = np.lexsort((found.start, found.lane))
    lane, end = found.lane[order], found.end[order]
    free = np.where(np.append(True, lane[1:] != lane[:-1]), 0.0, np.append(0.0, end[:-1]))
    since = np.maximum(free, found.asked[order])
    waited = np.flatnonzero(found.start[order] > since)
    gap = np.full(len(waited), np.nan)
    places = np.column_stack([since[waited], found.start[order][waited], gap]) * axis.factor
    rows = names[lane[waited]]
    figure.add_scatter(
        name="waiting",
        x=places.ravel(),
        y=np.column_stack([rows, rows, rows]).ravel(),
        mode="lines",
        line={"color": GREY, "width": 1.5},
        hoverinfo="skip",
    )


def _shares(found: Timeline, axis: Axis) -> go.Figure:
    """Draw a heat map of the fraction of time that each worker spent evaluating, per time bin."""
    drivers = sorted({driver for driver, _ in found.lanes})
    if len(found.lanes) <= MOST_LANES:
        group = np.arange(len(found.lanes))
        names = [_lane_name(found, lane) for lane in found.lanes]
    else:
        per_row = -(-len(drivers) // MOST_LANES)
        row_of = {driver: place // per_row for place, driver in enumerate(drivers)}
        group = np.array([row_of[driver] for driver, _ in found.lanes])
        names = [_group_name(drivers, row, per_row) for row in range(max(group) + 1)]
    count = len(names)
    spent = np.zeros((count, _BINS))
    width_s = found.span_s / _BINS
    for row in range(count):
        mine = group[found.lane] == row
        spent[row] = _spent(found.start[mine], found.end[mine], width_s)
    lanes = np.bincount(group, minlength=count)
    figure = _blank(found, axis, count)
    figure.add_heatmap(
        z=np.round(spent / (width_s * lanes[:, None]), 3),
        x0=0.5 * width_s * axis.factor,
        dx=width_s * axis.factor,
        y=names,
        zmin=0.0,
        zmax=1.0,
        colorscale=[[0.0, tint_series(0, 0.0)], [1.0, BLUE]],
        showscale=False,
        hovertemplate="%{y}, %{x:.4~g}: %{z:.0%} busy<extra></extra>",
    )
    return figure


def _spent(start: Floats, end: Floats, width_s: float) -> Floats:
    """Return the total seconds of evaluation within each time bin, (bins,)."""
    edges: Floats = np.arange(_BINS + 1, dtype=np.float64) * width_s
    return np.asarray(np.diff(_past(np.sort(start), edges) - _past(np.sort(end), edges)))


def _past(moments: Floats, edges: Floats) -> Floats:
    """Return for each bin edge the sum, over earlier moments, of the time since then, (edges,).

    ``moments`` are sorted.
    """
    sums = np.append(0.0, np.cumsum(moments))
    count = np.searchsorted(moments, edges)
    return np.asarray(count * edges - sums[count])


def _blank(found: Timeline, axis: Axis, lanes: int, **layout: str) -> go.Figure:
    figure = blank(
        xaxis=axis_layout(axis),
        yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
        height=_LEAST_PX + _LANE_PX * lanes,
        **layout,
    )
    figure.update_xaxes(range=[0.0, found.span_s * axis.factor])
    for pause in found.pauses.tolist():
        figure.add_vline(x=pause * axis.factor, line={"color": GREY, "dash": "dot", "width": 1})
    return figure


def _lane_name(found: Timeline, lane: tuple[int, int]) -> str:
    driver, place = lane
    alone = sum(one == driver for one, _ in found.lanes) == 1
    who = f"driver {driver}" if driver >= 0 else "unknown driver"
    return who if alone else f"{who}, {place + 1}"


def _group_name(drivers: Sequence[int], row: int, per_row: int) -> str:
    first, last = drivers[row * per_row], drivers[min((row + 1) * per_row, len(drivers)) - 1]
    return f"driver {first}" if first == last else f"drivers {first} to {last}"

"""Figures of the growth of the hypervolume over measurements and over evaluation time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dse.analysis.indicators import HypervolumeCurve, Spent, counted_in
from dse.core.pareto import ParetoSet, hypervolume_share
from dse.core.trial import Trial
from dse.core.values import Floats
from dse.report.axes import Axis, axis_of, seconds_axis
from dse.report.figures.style import BLUE, Drawing, axis_layout, blank, tint_series


def growth_figures(front: ParetoSet, trials: Sequence[Trial]) -> list[Drawing]:
    """Return figures of the hypervolume over measurements and over time, in a list.

    The list is empty without a hypervolume. With a single objective the figures show its best value
    so far.
    """
    if front.reference is None or front.reference_point is None:
        return []
    counted = counted_in(trials)
    progress = HypervolumeCurve.of(front.problem, trials, front.reference_point, counted)
    if not len(progress.counts):
        return []
    counts = Axis(name=counted)
    seconds = seconds_axis("evaluation time", float(progress.seconds[-1]))
    grown = _best(front, progress) or _volume(front, front.reference, progress)
    return [
        _drawing(counted, counts, progress.counts, grown),
        _drawing("seconds", seconds, progress.seconds, grown),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grown:
    """Curve of the hypervolume or best objective after each trial, with its axis and caption."""

    axis: Axis
    values: Floats  # (n,)
    caption: str
    filled: bool


def _volume(front: ParetoSet, reference: Floats, progress: HypervolumeCurve) -> _Grown:
    """Return hypervolumes in percent of the volume from reference point to final ideal point."""
    scaled = front.problem.on_scales
    reference = scaled(reference)
    ideal = scaled(front.losses).min(axis=0) if len(front.losses) else reference
    shares = [hypervolume_share(one, reference, ideal) for one in progress.hypervolume.tolist()]
    return _Grown(
        axis=Axis(name="hypervolume", unit="%"),
        values=100 * np.array(shares),
        caption="The volume that the front dominates, in percent of that between the reference "
        "point and the ideal point, which has the best value found of each objective.",
        filled=True,
    )


def _best(front: ParetoSet, progress: HypervolumeCurve) -> _Grown | None:
    if len(front.problem.objectives) > 1 or front.reference_point is None:
        return None
    (objective,), (point,) = front.problem.objectives, front.reference_point
    volumes = np.where(progress.hypervolume > 0, progress.hypervolume, np.nan)
    values = point - objective.sign * volumes
    axis = axis_of(objective.name, objective.unit, values)
    return _Grown(
        axis=replace(axis, name=f"best {objective.name}"),
        values=values * axis.factor,
        caption="The best value so far.",
        filled=False,
    )


def _drawing(key: str, axis: Axis, spent: Spent, grown: _Grown) -> Drawing:
    volumes = np.nan_to_num(grown.values, nan=np.inf)
    changes = np.flatnonzero(
        volumes != np.append(0.0, volumes[:-1])
    )  # infinities have no difference
    places = np.unique(np.append(changes, len(volumes) - 1))
    figure = blank(
        xaxis=axis_layout(axis), yaxis=axis_layout(grown.axis), showlegend=False, height=320
    )
    figure.update_xaxes(rangemode="tozero")
    start = (np.zeros(1), np.zeros(1)) if grown.filled else (np.zeros(0), np.zeros(0))
    look = {"fill": "tozeroy", "fillcolor": tint_series(0, 0.12)} if grown.filled else {}
    if grown.filled:
        figure.update_yaxes(rangemode="tozero")
    figure.add_scatter(
        x=np.append(start[0], spent[places] * axis.factor),
        y=np.append(start[1], grown.values[places]),
        mode="lines",
        line={"shape": "hv", "color": BLUE, "width": 2.5},
        hovertemplate="%{x:.4~g}: %{y:.5~g}<extra></extra>",
        **look,
    )
    name = grown.axis.name
    return Drawing(
        key=f"growth-{key}",
        title=f"{name[0].upper()}{name[1:]} over {axis.name}",
        caption=grown.caption,
        figure=figure,
    )

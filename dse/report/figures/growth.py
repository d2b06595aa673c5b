"""How the hypervolume grew: over measurements, and over the seconds they took."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.analysis.indicators import Progress, Spent, counted_in
from dse.core.pareto import ParetoSet
from dse.core.trial import Trial
from dse.core.values import Floats
from dse.report.axes import Axis, seconds_axis
from dse.report.figures.style import BLUE, Drawing, axis_layout, blank


def growth_figures(front: ParetoSet, trials: Sequence[Trial]) -> list[Drawing]:
    """Two figures, or none while there is no reference point to tell volumes from."""
    if front.reference is None:
        return []
    counted = counted_in(trials)
    progress = Progress.of(front.problem, trials, front.reference_point, counted)
    if not len(progress.counts):
        return []
    counts = Axis(name=counted, unit="", factor=1.0, log=False)
    seconds = seconds_axis("evaluation time", float(progress.seconds[-1]))
    return [
        _drawing(counted, counts, progress.counts, progress.hypervolume),
        _drawing("seconds", seconds, progress.seconds, progress.hypervolume),
    ]


def _drawing(key: str, axis: Axis, spent: Spent, volumes: Floats) -> Drawing:
    changes = np.flatnonzero(np.diff(volumes, prepend=0.0))
    places = np.unique(np.append(changes, len(volumes) - 1))
    figure = blank(
        xaxis=axis_layout(axis),
        yaxis=axis_layout(Axis(name="hypervolume", unit="", factor=1.0, log=False)),
        showlegend=False,
        height=320,
    )
    figure.update_yaxes(rangemode="tozero")
    figure.add_scatter(
        x=np.append(0.0, spent[places] * axis.factor),
        y=np.append(0.0, volumes[places]),
        mode="lines",
        line={"shape": "hv", "color": BLUE, "width": 2.5},
        fill="tozeroy",
        fillcolor="rgba(0,114,178,0.12)",
        hovertemplate="%{x:.4~g}: %{y:.5~g}<extra></extra>",
    )
    return Drawing(
        key=f"growth-{key}",
        title=f"Hypervolume over {axis.name}",
        caption="What the front dominates, up to the reference point.",
        figure=figure,
    )

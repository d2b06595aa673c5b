"""Figure of the front, coloured by the stage of the search that found each region."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.analysis.attainment import slices
from dse.analysis.runs import Run, Stage, stages
from dse.core.pareto import ParetoSet, nondominated
from dse.core.trial import Trial
from dse.core.values import Floats
from dse.report.axes import axis_of, widen
from dse.report.figures.style import BLUE, Drawing, axis_layout, blank, text, tint_series
from dse.report.words import number_text, truncate_text

_LEVELS = (0.25, 0.5, 0.75)
"""Quantiles of the third objective over the front, at which the space is cut."""

_STRENGTHS = (0.45, 0.3, 0.18, 0.1)
"""Opacity of the colour of each stage; later stages are drawn below earlier ones."""

_MOST_CORNERS = 1_000
"""Maximum number of corners of an outline; more would be within a pixel of one another."""

_PANEL_PX = 240
_LETTERS = 22


def stages_figure(front: ParetoSet, trials: Sequence[Trial]) -> list[Drawing]:
    """Return the figure of the front's growth by stages of the search, in a list.

    The list is empty with one objective, or if the front never improved.
    """
    problem = front.problem
    found = stages(Run.of("", problem, trials))
    if len(problem.objectives) < 2 or len(found) < 2:
        return []
    cuts: list[float | None] = [None]
    if len(problem.objectives) > 2:
        cuts = list(dict.fromkeys(np.quantile(front.losses[:, 2], _LEVELS).tolist()))
    panels = _Panels(front, found, cuts)
    many = len(cuts) > 1
    return [
        Drawing(
            key="stages",
            title="Which part of the front was found when",
            caption=_caption(several=len(problem.objectives) > 2),
            figure=panels.figure(),
            wide=many,
            least_px=_PANEL_PX * len(cuts) if many else 280,
        )
    ]


def _caption(*, several: bool) -> str:
    where = (
        " Each panel requires the third objective to meet the bound in its title."
        if several
        else ""
    )
    return (
        f"The attained region; the darker, the earlier. Where dark and light end together, the "
        f"front was found early; where only light reaches, it was found late.{where}"
    )


class _Panels:
    """Panels of the figure over the first two objectives, one per upper bound on the third."""

    def __init__(
        self, front: ParetoSet, found: Sequence[Stage], cuts: Sequence[float | None]
    ) -> None:
        self._objectives = front.problem.objectives
        self._stages, self._cuts = found, cuts
        self._signs = [o.sign for o in self._objectives]
        self._final = found[-1].losses
        self._axes = [
            axis_of(o.name, o.unit, sign * self._final[:, place])
            for place, (o, sign) in enumerate(zip(self._objectives[:2], self._signs, strict=False))
        ]

    def figure(self) -> go.Figure:
        """Draw all panels with one legend."""
        figure = make_subplots(
            rows=1,
            cols=len(self._cuts),
            shared_yaxes=True,
            shared_xaxes="all",
            subplot_titles=[self._title(cut) for cut in self._cuts],
            horizontal_spacing=0.04,
        )
        figure.update_layout(
            blank(showlegend=True, margin={"l": 12, "r": 12, "t": 60, "b": 12}).layout
        )
        figure.update_layout(legend={"entrywidth": 210, "y": 1.1}, legend_traceorder="reversed")
        across, up = self._axes
        goals = [objective.goal for objective in self._objectives]
        figure.update_xaxes(axis_layout(across, goals[0]))
        figure.update_yaxes({**axis_layout(up, goals[1]), "title": None})
        figure.update_yaxes(axis_layout(up, goals[1]), col=1)
        figure.update_annotations(font={"size": 12})
        ends = [self._end(place) for place in (0, 1)]
        for column, cut in enumerate(self._cuts, start=1):
            looks = zip(self._stages, _STRENGTHS, strict=False)
            for stage, strength in reversed(list(looks)):  # the earliest, and smallest, on top
                inside = (stage.losses[:, :2] < ends).all(axis=1)
                rows = _find_corners(stage.losses[inside], cut)
                if len(rows):
                    self._add(figure, stage, strength, _outline(rows, ends), column)
        return figure

    def _add(
        self, figure: go.Figure, stage: Stage, strength: float, outline: Floats, column: int
    ) -> None:
        figure.add_scatter(
            name=text(_name(stage)),
            legendgroup=_name(stage),
            showlegend=_name(stage) not in {one.legendgroup for one in figure.data},
            x=self._to_shown_units(0, outline[:, 0]),
            y=self._to_shown_units(1, outline[:, 1]),
            mode="lines",
            line={"shape": "hv", "color": BLUE, "width": 1},
            fill="toself",
            fillcolor=tint_series(0, strength),
            hoveron="points",
            hovertemplate="%{x:.4~g}, %{y:.4~g}",
            row=1,
            col=column,
        )

    def _end(self, place: int) -> float:
        """Return the end of an axis of the plot, a little beyond the front's worst value."""
        sign = self._signs[place]
        values = sign * self._final[:, place]
        ends = widen(float(values.min()), float(values.max()), log=self._axes[place].log)
        return max(sign * end for end in ends)

    def _to_shown_units(self, place: int, losses: Floats) -> Floats:
        return losses * self._signs[place] * self._axes[place].factor

    def _title(self, cut: float | None) -> str:
        if cut is None:
            return ""
        third = self._objectives[2]
        sign = "≤" if third.goal == "minimize" else "≥"
        bound = number_text(self._signs[2] * cut, third.unit)
        return text(f"{truncate_text(third.name, _LETTERS)} {sign} {bound}")


def _find_corners(losses: Floats, cut: float | None) -> Floats:
    """Return the corners of a stage's front in the plane of the first two objectives, (k, 2).

    Only designs within the third objective's bound ``cut`` count. Corners are sorted by the first
    objective; if there are too many, evenly spaced ones are kept.
    """
    rows = losses[:, :2] if cut is None else slices([losses], cut)[0]
    rows = rows[nondominated(rows)]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if len(rows) > _MOST_CORNERS:
        rows = rows[np.linspace(0, len(rows) - 1, _MOST_CORNERS).round().astype(np.int64)]
    return np.asarray(rows)


def _outline(
    rows: Floats,  # (k, 2), from the left
    ends: Sequence[float],
) -> Floats:
    """Return the polygon of the plot region that the front of k corners dominates, (k + 3, 2)."""
    first, last = (rows[0, 0], ends[1]), (ends[0], rows[-1, 1])
    return np.vstack([first, rows, last, ends])


def _name(stage: Stage) -> str:
    return f"by {stage.spent:,.0f} {stage.currency} ({stage.share:.0%})"

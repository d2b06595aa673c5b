"""Figures of empirical attainment surfaces of groups of studies, and of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import plotly.graph_objects as go

from dse.analysis.attainment import Difference, Surface, difference, slices, surfaces
from dse.analysis.comparison import ComparisonResult
from dse.core.values import Floats
from dse.report.axes import axis_of
from dse.report.figures.style import BLUE, ORANGE, Drawing, axis_layout, blank, text, tint_series
from dse.report.words import number_text

MOST_PAIRS = 6
"""Maximum number of pairs of groups that are drawn against each other."""

_LEVELS = (0.25, 0.5, 0.75)
"""Quantiles of the third objective over the joint front, at which the space is cut."""

_DASHES = ("dot", "solid", "dash")


def attainment_figures(comparison: ComparisonResult) -> list[Drawing]:
    """Return figures of each group's attainment surfaces and of their differences between groups.

    Three objectives are drawn as slices of the third; with any other number than two or three there
    are no figures.
    """
    plane = _Plane(comparison)
    size = len(comparison.objectives)
    if size not in (2, 3) or not len(comparison.yardstick.joint):
        return []
    fronts = [[course.final for course in group] for group in comparison.courses]
    cuts: list[float | None] = [None]
    if size == 3:
        cuts = list(np.quantile(comparison.yardstick.joint[:, 2], _LEVELS).tolist())
    drawn = []
    for place, cut in enumerate(cuts):
        seen = fronts if cut is None else [slices(group, cut) for group in fronts]
        drawn.append(plane.surfaces(seen, place, cut))
        for a, b in list(combinations(range(len(seen)), 2))[:MOST_PAIRS]:
            found = difference(seen[a], seen[b], comparison.yardstick.point[:2])
            drawn += [plane.difference(found, (a, b), place, cut)] if found else []
    return drawn


class _Plane:
    """Renderer of attainment figures in the plane of the first two objectives."""

    def __init__(self, comparison: ComparisonResult) -> None:
        self._comparison = comparison
        self._signs = [o.sign for o in comparison.objectives]
        joint = comparison.yardstick.joint
        self._axes = [
            axis_of(o.name, o.unit, sign * joint[:, place])
            for place, (o, sign) in enumerate(
                zip(comparison.objectives[:2], self._signs, strict=False)
            )
        ]

    def surfaces(self, fronts: Sequence[Sequence[Floats]], key: int, cut: float | None) -> Drawing:
        """Draw each group's attainment surfaces: regions that any, half and all studies attain."""
        figure = self._figure(showlegend=True)
        for place, (group, of_group) in enumerate(
            zip(self._comparison.groups, fronts, strict=True)
        ):
            self._add_surfaces(figure, group.name, place, surfaces(of_group))
        several = any(len(group.results) > 1 for group in self._comparison.groups)
        words = "What any study of a group attains (dotted), half of them (solid), all (dashed)."
        return Drawing(
            key=f"attained-{key}",
            title=f"What is attained{self._cut(cut)}",
            caption=words if several else "What each study attains.",
            figure=figure,
            wide=True,
        )

    def difference(
        self, found: Difference, pair: tuple[int, int], key: int, cut: float | None
    ) -> Drawing:
        """Draw the difference in the fraction of studies that attain each point, for two groups.

        It is the first group's fraction minus the second's.
        """
        first, second = (self._comparison.groups[place].name for place in pair)
        figure = self._figure(showlegend=False)
        figure.add_heatmap(
            x=self._to_shown_units(0, found.across),
            y=self._to_shown_units(1, found.up),
            z=np.round(found.shares, 4),
            zmin=-1,
            zmax=1,
            colorscale=[[0.0, ORANGE], [0.5, "rgba(128,128,128,0.08)"], [1.0, BLUE]],
            colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": "+.0%"},
            hovertemplate="%{z:+.0%}<extra></extra>",
        )
        return Drawing(
            key=f"difference-{key}-{pair[0]}-{pair[1]}",
            title=f"{first} against {second}{self._cut(cut)}",
            caption=f"Blue: attained by more studies of {first}; orange: by more of {second}.",
            figure=figure,
        )

    def _figure(self, *, showlegend: bool) -> go.Figure:
        goals = [objective.goal for objective in self._comparison.objectives]
        across, up = (
            axis_layout(axis, goal) for axis, goal in zip(self._axes, goals, strict=False)
        )
        return blank(xaxis=across, yaxis=up, showlegend=showlegend)

    def _add_surfaces(
        self, figure: go.Figure, name: str, place: int, found: Sequence[Surface]
    ) -> None:
        middle = (len(found) - 1) // 2
        for rank, surface in enumerate(found):
            rows = surface.losses[np.argsort(surface.losses[:, 0], kind="stable")]
            dash = "solid" if len(found) == 1 else _DASHES[rank + 3 - len(found)]
            figure.add_scatter(
                name=text(name),
                legendgroup=str(place),
                showlegend=rank == middle,
                x=self._to_shown_units(0, rows[:, 0]),
                y=self._to_shown_units(1, rows[:, 1]),
                mode="lines+markers" if len(rows) < 100 else "lines",
                marker={"size": 4, "color": tint_series(place, 1.0)},
                line={"shape": "hv", "dash": dash, "color": tint_series(place, 1.0), "width": 2},
                hovertemplate=f"{surface.runs} or more: %{{x:.4~g}}, %{{y:.4~g}}",
            )

    def _to_shown_units(self, place: int, losses: Floats) -> Floats:
        return losses * self._signs[place] * self._axes[place].factor

    def _cut(self, cut: float | None) -> str:
        if cut is None:
            return ""
        third = self._comparison.objectives[2]
        bound = number_text(self._signs[2] * cut, third.unit)
        return f", {third.text} {'<=' if third.goal == 'minimize' else '>='} {bound}"

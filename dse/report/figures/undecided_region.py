"""Region between the front and the optimistic front of a gap, in the plane of two objectives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dse.core.pareto import ParetoSet, nondominated
from dse.core.recorded_gap import RecordedGap
from dse.core.values import Floats
from dse.report.axes import Axis
from dse.report.figures.style import ORANGE, tint_series


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedRegion:
    """Region in the plane of two objectives where unmeasured designs may improve the front.

    The region is dominated by the optimistic front (predictions at their optimistic ends) and not
    by the front found. Both fronts are those of the two objectives alone, as losses (minimised),
    sorted by the first.
    """

    found: Floats  # (k, 2)
    optimistic: Floats  # (h, 2), of the found and the undecided designs
    corner: Floats  # (2,), the worst losses of the region
    confidence: float

    @staticmethod
    def of(front: ParetoSet, gap: RecordedGap | None, x: int, y: int) -> UndecidedRegion | None:
        """Return the region of two objectives; ``None`` if nothing is undecided there.

        Args:
            front: the study's front.
            gap: the study's hypervolume gap; ``None`` while it is unknown.
            x: index of the objective on the horizontal axis.
            y: index of the objective on the vertical axis.
        """
        if gap is None or not gap.points or front.reference is None or not len(front.losses):
            return None
        pair = [x, y]
        signs = np.array([objective.sign for objective in front.problem.objectives])
        points = np.array(gap.points)
        if points.shape[1] != len(signs):
            return None
        known = front.losses[:, pair]
        found, optimistic = _best(known), _best(np.vstack([known, (points * signs)[:, pair]]))
        if np.array_equal(found, optimistic):
            return None
        return UndecidedRegion(
            found=found,
            optimistic=optimistic,
            corner=np.maximum(front.reference[pair], found.max(axis=0)),
            confidence=gap.confidence,
        )

    @property
    def outline(self) -> Floats:
        """Polygon around the region, (n, 2): the optimistic front, then the found one."""
        there = _region_boundary(self.optimistic, self.corner)
        return np.vstack([there, _region_boundary(self.found, self.corner)[::-1]])

    @property
    def name(self) -> str:
        """Name of the region of undecided designs, for a legend."""
        return f"undecided at {100 * self.confidence:.4g} %"


def add_undecided(
    figure: go.Figure, region: UndecidedRegion, axes: tuple[Axis, Axis], signs: tuple[float, float]
) -> None:
    """Draw the region shaded, and the optimistic front as a dashed step line.

    Args:
        figure: the figure to draw into.
        region: the region.
        axes: the horizontal and the vertical axis of the figure.
        signs: factors from losses to the values of the two objectives, 1 or -1.
    """
    area, line = (
        [_shown(places[:, k] * signs[k], axes[k]) for k in (0, 1)]
        for places in (region.outline, region.optimistic)
    )
    figure.add_scatter(
        name=region.name,
        legendgroup="undecided",
        x=area[0],
        y=area[1],
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=tint_series(4, 0.18),
        hoverinfo="skip",
    )
    figure.add_scatter(
        name="optimistic front",
        legendgroup="undecided",
        showlegend=False,
        x=line[0],
        y=line[1],
        mode="lines",
        line={"shape": "hv", "color": ORANGE, "width": 1.5, "dash": "dash"},
        hovertemplate="optimistic: %{x:.4~g}, %{y:.4~g}<extra></extra>",
    )


def _best(losses: Floats) -> Floats:
    """Return the non-dominated ones of n points, sorted by the first objective, (k, 2)."""
    kept = losses[nondominated(losses)]
    return np.asarray(kept[np.argsort(kept[:, 0], kind="stable")])


def _region_boundary(rows: Floats, corner: Floats) -> Floats:
    """Return the vertices of the boundary of the region that k points dominate, (2 k + 1, 2).

    Args:
        rows: (k, 2), non-dominated losses, sorted by the first objective.
        corner: (2,), the largest losses, where the boundary ends in both directions.
    """
    across = np.append(np.repeat(rows[:, 0], 2), corner[0])
    up = np.insert(np.repeat(rows[:, 1], 2), 0, corner[1])
    return np.column_stack([across, up])


def _shown(values: Floats, axis: Axis) -> Floats:
    """Return values in the unit of an axis; on a log axis, replace those that are not positive.

    The replacement is a thousandth of the least positive value, which is beyond the axis.
    """
    if axis.log and (values > 0).any():
        values = np.maximum(values, 1e-3 * values[values > 0].min())
    return values * axis.factor

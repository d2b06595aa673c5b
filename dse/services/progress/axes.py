"""Axes of the terminal scatter plot: their ranges, in the unit and sign of each objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.objective import Objective
from dse.core.values import Floats
from dse.report.words import number_text

_DECADES = 100.0
"""Ratio of the ends of an axis from which on it is logarithmic."""

_MOST = 0.9
"""Share of the feasible trials that an axis covers, ..."""

_FRONTS = 3.0
"""... unless it would then be longer than this multiple of the front's range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotAxis:
    """Axis of a plot, from ``low`` to ``high``."""

    name: str
    low: float
    high: float
    unit: str = ""
    aim: str = ""
    log: bool = False

    @property
    def title(self) -> str:
        """Name of the axis, with the better direction and a note of a logarithmic scale."""
        words = ", ".join(word for word in (self.aim, "log scale" if self.log else "") if word)
        return f"{self.name} ({words})" if words else self.name

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends as texts; counts have no decimals."""
        low, high = (number_text(end, self.unit) for end in (self.low, self.high))
        return low, high

    def shares(self, values: Floats) -> Floats:
        """Return the positions of values along the axis: 0 at its low end, 1 at its high end."""
        with np.errstate(invalid="ignore", divide="ignore"):
            told, low, high = (
                (np.log(values), np.log(self.low), np.log(self.high))
                if self.log
                else (values, self.low, self.high)
            )
            if high == low:  # all points are equal: draw them in the middle
                return np.where(values == self.low, 0.5, np.nan)
            return np.asarray((told - low) / (high - low))


def axis_of(
    objective: Objective,
    front: Floats,  # (k,), losses
    answers: Floats,  # (n,), losses of all feasible trials, including the front
) -> PlotAxis:
    """Return an axis that covers the front and most of the other feasible trials.

    It covers the share :data:`_MOST` of them, but at most :data:`_FRONTS` times the front's range.
    """
    best, worst = float(front.min()), float(front.max())
    far = float(np.quantile(answers, _MOST)) if len(answers) else worst
    if worst > best:
        far = min(far, best + _FRONTS * (worst - best))
    far = max(far, worst)
    low, high = sorted((restore_sign(objective, best), restore_sign(objective, far)))
    return PlotAxis(
        name=objective.name,
        low=low,
        high=high,
        unit=objective.unit,
        aim="less is better" if objective.goal == "minimize" else "more is better",
        log=low > 0 and high >= _DECADES * low,
    )


def restore_sign(objective: Objective, loss: float) -> float:
    """Return a loss with the sign of its objective, as users read it."""
    return loss if objective.goal == "minimize" else -loss

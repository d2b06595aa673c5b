"""The axes of a small scatter: from where to where, in an objective's own unit and sign."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.objective import Objective
from dse.core.values import Floats
from dse.report.words import number_text

_DECADES = 100.0
"""Where the greater end is so many times the lesser, an axis is logarithmic."""

_MOST = 0.9
"""An axis ends where so great a share of the answers is on it, ..."""

_FRONTS = 3.0
"""... unless it would be longer than so many times the front."""


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
        """The name, where it is better, and the scale if it is none that people expect."""
        words = ", ".join(word for word in (self.aim, "log scale" if self.log else "") if word)
        return f"{self.name} ({words})" if words else self.name

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends for people; counts without decimals."""
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
            if high == low:  # equal points stand in the middle
                return np.where(values == self.low, 0.5, np.nan)
            return np.asarray((told - low) / (high - low))


def axis_of(
    objective: Objective,
    front: Floats,  # (k,), losses
    answers: Floats,  # (n,), losses, those of the front too
) -> PlotAxis:
    """The axis that shows the front large, with the better part of the other answers."""
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
